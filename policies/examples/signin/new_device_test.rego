package surrogate.signin_test

import data.surrogate.signin

on_device(stage, known, failures, wanted) if {
	wanted in signin.require with input as {
		"stage": stage,
		"device": {"known": known},
		"failures": failures,
		"factors": {"available": [], "used": ["password"]},
		"settings": {"mfa": {"policy": "NoPrompt", "organizationPolicy": "NoPrompt", "organizations": []}},
	}
}

test_a_new_device_needs_a_captcha_first_and_two_factors_then if {
	on_device("prove", false, 0, "captcha")
	on_device("mfa", false, 0, "mfa")
}

test_a_known_device_needs_neither if {
	not on_device("prove", true, 0, "captcha")
	not on_device("mfa", true, 2, "mfa")
}

test_failures_make_a_known_device_suspicious if on_device("mfa", true, 3, "mfa")
