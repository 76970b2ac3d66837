# Nobody acts as an administrator, or as a user whose customData says `"protected": true`. Refused at minting, and again at exchange for
# whoever became protected in between.
package surrogate.impersonation

protected_roles := {"admin", "security"}

deny contains "protected_user" if {
	some role in input.subject.roles
	role in protected_roles
}

# Whatever is there but a plain `false`: a mistake protects.
deny contains "protected_user" if input.subject.customData.protected != false
