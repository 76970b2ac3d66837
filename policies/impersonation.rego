# METADATA
# title: Impersonation decision
# description: |
#   Asked when a subject token is minted (`input.stage == "mint"`) and again when it is exchanged (`"exchange"`). By itself this file
#   allows everything but acting as an administrator: who may act for whom is the integrator's decision until the operator makes it
#   here. To add a rule, write one more file in this package that adds to `deny`, `step_up`, `require`, `withheld`, `max_ttl`,
#   `read_only` or `grounds`; `examples/impersonation` holds some to begin with. The decision is `{"allow": bool, "reason"?: string,
#   "require"?: ["approval"], "scopes"?: [subset of input.scopes], "maxTtl"?: seconds, "readOnly"?: bool,
#   "grounds"?: [string]}`; a refusal with the reason `step_up_required` has `acr_values` and `max_age`.
# scope: package
# schemas:
#   - input: schema.impersonation
package surrogate.impersonation

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": objections[0]} if {
	count(objections) > 0
} else := object.union(sort(step_up)[0], {"allow": false, "reason": "step_up_required"}) if {
	count(step_up) > 0
} else := object.union_n([{"allow": true}, requirements, step_down, time_box, reading, because]) if {
	input.version == 1
	count(deny) == 0
	count(step_up) == 0
}

# Reasons to refuse, told to the caller; of several the first in alphabetical order.
deny contains "" if false

# Nobody acts as whoever holds permissions of the Management API, unless a rule of yours makes this true.
default administrators_permitted := false

deny contains "subject_is_administrator" if {
	count(input.subject.managementScopes) > 0
	not administrators_permitted
}

# How whoever acts must have signed in: `{"acr_values": [...], "max_age": seconds}`, either or both. They are told to sign in so.
step_up contains {} if false

# "approval": the subject must have agreed. Where they have not, minting asks them; an exchange without it is refused.
require contains "" if false

# Scopes of those asked for that are not granted. They count at exchange only.
withheld contains "" if false

# Seconds after which the token ends; the shortest counts. At exchange only.
max_ttl contains 0 if false

# The token only reads: it has the claim `access: "read"`. At exchange only.
default read_only := false

# What speaks for it, such as "on_call": kept with the session and told in its time line. It decides nothing.
grounds contains "" if false

objections := sort(deny)

requirements := {"require": sort(require)} if {
	count(require) > 0
} else := {}

step_down := {"scopes": [scope | some scope in input.scopes; not scope in withheld]} if {
	count(withheld) > 0
} else := {}

time_box := {"maxTtl": min(max_ttl)} if {
	count(max_ttl) > 0
} else := {}

reading := {"readOnly": true} if {
	read_only
} else := {}

because := {"grounds": sort(grounds)} if {
	count(grounds) > 0
} else := {}
