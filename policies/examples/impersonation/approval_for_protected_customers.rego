# Customers who are to be asked first agree before anybody acts as them: those with the role, and whose customData says
# `"askFirst": true`.
package surrogate.impersonation

require contains "approval" if "protected-customer" in input.subject.roles

# Whatever is there but a plain `false`: a mistake protects.
require contains "approval" if input.subject.customData.askFirst != false

# Told in the time line of the session.
grounds contains "approved_by_customer" if input.approval
