package surrogate.signin_test

import data.surrogate.signin

by_role(roles, available, wanted) if {
	wanted in signin.require with input as {
		"stage": "mfa",
		"subject": {"roles": roles},
		"device": {"known": true},
		"failures": 0,
		"factors": {"available": available, "used": ["password"]},
		"settings": {"mfa": {"policy": "NoPrompt", "organizationPolicy": "NoPrompt", "organizations": []}},
	}
}

test_support_needs_two_factors if by_role(["customer", "support"], [], "mfa")

test_support_without_a_second_factor_gets_one if by_role(["support"], [], "enrol")

test_support_with_a_second_factor_need_not_enrol if not by_role(["support"], ["totp"], "enrol")

test_customers_need_not if not by_role(["customer"], [], "mfa")
