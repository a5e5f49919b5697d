//! Grids and the carbon of their electricity, each figure with its publisher and year.

use serde::{Deserialize, Serialize};

/// What a figure includes.
const LIFE_CYCLE: &str = "CO2e over the life cycle of generation";
const AT_GENERATION: &str = "CO2 at generation";
const DIRECT: &str = "CO2e at generation";

/// Where figures come from.
const OWID: &str = "Ember and Energy Institute, processed by Our World in Data, \"Carbon intensity of electricity generation\"";
const EMBER: &str = "Ember, Yearly Electricity Data, July 2024";
const EPA: &str = "US EPA, eGRID2022 summary tables, total output emission rate (823.149 lb/MWh)";
const DESNZ: &str = "UK DESNZ, Greenhouse gas reporting conversion factors 2024, electricity generated";

/// A grid of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Grid {
    /// Its country in ISO 3166-1 alpha-3, or `WORLD`.
    pub(super) name: &'static str,
    /// Its country.
    pub(super) country: &'static str,
    /// Grams of CO2 or CO2 equivalents a kilowatt-hour.
    pub(super) grams_per_kwh: f64,
    /// What the figure includes.
    pub(super) includes: &'static str,
    /// The year it is about.
    pub(super) year: u16,
    /// Who published it.
    pub(super) source: &'static str,
}

const fn owid(name: &'static str, country: &'static str, grams_per_kwh: f64) -> Grid {
    Grid { name, country, grams_per_kwh, includes: LIFE_CYCLE, year: 2023, source: OWID }
}

const fn ember(name: &'static str, country: &'static str, grams_per_kwh: f64) -> Grid {
    Grid { name, country, grams_per_kwh, includes: LIFE_CYCLE, year: 2023, source: EMBER }
}

/// The grids, by name.
pub(super) const GRIDS: [Grid; 36] = [
    owid("ARG", "Argentina", 354.0),
    owid("AUS", "Australia", 549.0),
    owid("AUT", "Austria", 111.0),
    owid("BEL", "Belgium", 138.0),
    owid("BGD", "Bangladesh", 691.0),
    owid("BGR", "Bulgaria", 335.0),
    owid("BIH", "Bosnia and Herzegovina", 600.0),
    owid("BOL", "Bolivia", 532.0),
    owid("BRA", "Brazil", 98.0),
    owid("CAN", "Canada", 170.0),
    owid("CHL", "Chile", 291.0),
    owid("CHN", "China", 582.0),
    owid("COL", "Colombia", 260.0),
    owid("CRI", "Costa Rica", 53.0),
    owid("CYP", "Cyprus", 534.0),
    owid("CZE", "Czechia", 450.0),
    owid("DEU", "Germany", 381.0),
    owid("DNK", "Denmark", 152.0),
    owid("ECU", "Ecuador", 150.0),
    owid("EGY", "Egypt", 570.0),
    owid("EST", "Estonia", 417.0),
    owid("FIN", "Finland", 79.0),
    owid("FRA", "France", 56.0),
    Grid {
        name: "GBR",
        country: "United Kingdom",
        grams_per_kwh: 207.05,
        includes: DIRECT,
        year: 2024,
        source: DESNZ,
    },
    owid("GEO", "Georgia", 168.0),
    owid("GRC", "Greece", 337.0),
    owid("HRV", "Croatia", 205.0),
    owid("HUN", "Hungary", 204.0),
    owid("IND", "India", 713.0),
    owid("IRL", "Ireland", 291.0),
    owid("IRN", "Iran", 655.0),
    ember("NOR", "Norway", 30.0),
    ember("POL", "Poland", 662.0),
    ember("SWE", "Sweden", 40.7),
    Grid {
        name: "USA",
        country: "United States",
        grams_per_kwh: 373.4,
        includes: AT_GENERATION,
        year: 2022,
        source: EPA,
    },
    ember("WORLD", "World", 481.0),
];

/// The grid of this name or country, however it is written.
pub(super) fn find(name: &str) -> Option<&'static Grid> {
    GRIDS.iter().find(|grid| grid.name.eq_ignore_ascii_case(name) || grid.country.eq_ignore_ascii_case(name))
}

/// The factor that energy is multiplied with, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Factor {
    /// The grid's name, or `--intensity`.
    pub(super) grid: String,
    /// Grams a kilowatt-hour.
    pub(super) grams_per_kwh: f64,
    /// What the figure includes; null for the user's own.
    pub(super) includes: Option<String>,
    /// The year it is about; null for the user's own.
    pub(super) year: Option<u16>,
    /// Who published it.
    pub(super) source: String,
}

impl From<&Grid> for Factor {
    fn from(grid: &Grid) -> Self {
        Self {
            grid: grid.name.to_owned(),
            grams_per_kwh: grid.grams_per_kwh,
            includes: Some(grid.includes.to_owned()),
            year: Some(grid.year),
            source: grid.source.to_owned(),
        }
    }
}

impl Factor {
    /// A figure of the user's.
    pub(super) fn own(grams_per_kwh: f64) -> Self {
        let source = "given by the user".to_owned();
        Self { grid: "--intensity".to_owned(), grams_per_kwh, includes: None, year: None, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_has_a_plausible_figure_a_year_and_a_publisher() {
        for pair in GRIDS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} and {}", pair[0].name, pair[1].name);
        }
        for grid in GRIDS {
            assert!((1.0..1200.0).contains(&grid.grams_per_kwh), "{}", grid.name);
            assert!((2020..2030).contains(&grid.year) && !grid.source.is_empty(), "{}", grid.name);
        }
    }

    #[test]
    fn pounds_a_megawatt_hour_are_grams_a_kilowatt_hour() {
        let grams = 823.149 * 453.592_37 / 1000.0;
        assert!((find("usa").unwrap().grams_per_kwh - grams).abs() < 0.05, "{grams}");
    }

    #[test]
    fn grids_are_found_by_code_and_country() {
        assert_eq!(find("fra"), find("France"));
        assert_eq!(find("FRA").unwrap().grams_per_kwh, 56.0);
        assert!(find("Atlantis").is_none());
    }
}
