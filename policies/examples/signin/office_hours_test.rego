package surrogate.signin_test

import data.surrogate.signin

at_the_office(client, now) if at_the_office_at("mfa", client, now)

at_the_office_at(stage, client, now) if {
	not "outside_office_hours" in signin.deny with input as {
		"stage": stage,
		"client": {"name": client},
		"now": time.parse_rfc3339_ns(now) / 1000000000,
	}
}

test_the_office_is_open_by_day if {
	at_the_office("Back office", "2026-01-07T07:00:00+01:00")
	at_the_office("Back office", "2026-07-08T18:59:59+02:00")
}

test_the_office_is_closed_at_night_and_on_weekends if {
	not at_the_office("Back office", "2026-01-07T06:59:59+01:00")
	not at_the_office("Back office", "2026-01-07T19:00:00+01:00")
	not at_the_office("Back office", "2026-01-10T12:00:00+01:00")
}

test_whoever_has_signed_in_elsewhere_comes_in_office_hours_only if {
	at_the_office_at("session", "Back office", "2026-01-07T13:00:00+01:00")
	not at_the_office_at("session", "Back office", "2026-01-07T22:00:00+01:00")
}

test_other_applications_have_no_hours if at_the_office("Shop", "2026-01-10T03:00:00+01:00")
