package surrogate.signin_test

import data.surrogate.signin

passkey_needed(stage, roles) if {
	"phr" in signin.require with input as {"stage": stage, "subject": {"roles": roles}}
}

test_administrators_need_a_passkey if {
	passkey_needed("mfa", ["admin"])
	passkey_needed("finish", ["customer", "admin"])
}

test_a_session_without_one_is_not_enough if passkey_needed("session", ["admin"])

test_others_do_not if not passkey_needed("mfa", ["administration"])
