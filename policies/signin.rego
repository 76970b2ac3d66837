# METADATA
# title: Sign-in decision
# description: |
#   Asked before anybody is known (`input.stage == "prove"`), before the second factor (`"mfa"`), before anything is committed
#   (`"finish"`), and where a session leads to an application without a proof (`"session"`). By itself this file does what the settings say. To add a rule, write one more file in this package that adds to `deny`,
#   `require`, `idle_ttl` or `absolute_ttl`; `examples/signin` holds some to begin with. The decision is `{"allow": bool, "reason"?: string,
#   "require"?: ["mfa" | "phr" | "enrol" | "captcha"], "session"?: {"idle"?: seconds, "absolute"?: seconds}}`.
# scope: package
# schemas:
#   - input: schema.signin
package surrogate.signin

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": objections[0]} if {
	count(objections) > 0
} else := {"allow": true, "require": required, "session": object.union(idle, absolute)} if {
	input.version == 1
	count(deny) == 0
}

# Reasons to refuse, told to the person's application; of several the first in alphabetical order.
deny contains "" if false

# What this sign-in needs, whether or not it has been done: the issuer knows what has.
# "mfa": two factors. "phr": a passkey. "enrol": a second factor of their own. "captcha": the test for machines.
require contains "mfa" if {
	person_signs_in
	count(input.factors.available) > 0
}

require contains "mfa" if {
	person_signs_in
	factors_are_mandatory
}

require contains "enrol" if {
	person_signs_in
	factors_are_mandatory
	count(input.factors.available) == 0
}

# Seconds until a session ends that is not used, and until it ends anyway. The shortest counts; none says more than the settings.
idle_ttl contains 0 if false

absolute_ttl contains 0 if false

# A session that exists was begun with what the settings asked for then.
person_signs_in if input.stage in {"mfa", "finish"}

# Settings that ask for a factor and enable none keep nobody out.
factors_are_mandatory if {
	count(input.settings.mfa.factors) > 0
	input.settings.mfa.policy == "Mandatory"
}

factors_are_mandatory if {
	count(input.settings.mfa.factors) > 0
	input.settings.mfa.organizationPolicy == "Mandatory"
	count(input.settings.mfa.organizations) > 0
}

objections := sort(deny)

required := sort(require)

idle := {"idle": min(idle_ttl)} if {
	count(idle_ttl) > 0
} else := {}

absolute := {"absolute": min(absolute_ttl)} if {
	count(absolute_ttl) > 0
} else := {}
