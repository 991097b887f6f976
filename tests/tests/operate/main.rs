//! What an operator does over the years: backups and restores, leaving and coming back. On installations as `up` leaves them, with
//! the operator's own program.

mod backup;
mod broken;
mod docker;
mod encrypted;
mod leaving;
mod moving;
mod roll_back;
mod scale;
mod schedule;
mod uninstall;
mod upgrade;
