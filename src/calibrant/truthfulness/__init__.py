"""Who gains by lying: expected values of a measure under every report, by complete enumeration."""
