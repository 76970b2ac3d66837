package surrogate.signin_test

import data.surrogate.signin

country_refused(question) if "country_not_allowed" in signin.deny with input as question

test_nobody_signs_in_from_there if {
	country_refused({"stage": "prove", "country": "KP"})
	country_refused({"stage": "finish", "country": "kp"})
}

test_people_sign_in_from_elsewhere if not country_refused({"stage": "mfa", "country": "DE"})

test_an_unknown_country_is_not_refused if not country_refused({"stage": "mfa"})
