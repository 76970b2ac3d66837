import { howToRun } from '../cli/how-to-run.ts'
import type { DemoFile } from './demo-file.ts'

/** Signs the customer in to the web application; the secrets stand in the environment, not among the arguments. */
export const loginLine = ({ issuerUrl, webUrl, data }: DemoFile): string =>
  data
    ? `LOGIN_PASSWORD=${data.customer.password} LOGIN_CLIENT_SECRET=${data.webApplication.clientSecret} ${howToRun.surrogate} login --issuer ${issuerUrl}/oidc --client ${data.webApplication.clientId} --user ${data.customer.username} --redirect-uri ${webUrl}/callback --scope 'openid profile read:orders' --resource ${data.ordersResource}`
    : ''

/**
 * The impersonation flow for a terminal (POSIX sh, curl, sed). Each line works as printed, in this order: a line that
 * obtains a token keeps it in a variable for the next ones.
 */
export const curlLines = ({ issuerUrl, gatewayUrl, data }: DemoFile): { about: string; line: string }[] => {
  if (data === undefined) return []
  const { integrator, application, customer, agent, ordersResource } = data
  const member = (name: string) => `sed -n 's/.*"${name}" *: *"\\([^"]*\\)".*/\\1/p'`
  const token = `${issuerUrl}/oidc/token`
  const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
  const exchange = 'grant_type=urn:ietf:params:oauth:grant-type:token-exchange'
  const client = `-u '${application.clientId}:${application.clientSecret}'`
  const subjectToken = (userId: string, context: string) =>
    `curl -s ${issuerUrl}/api/subject-tokens -H "Authorization: Bearer $MANAGEMENT_TOKEN" -H 'Content-Type: application/json' -d '{"userId":"${userId}"${context}}' | ${member('subjectToken')}`

  return [
    {
      about: 'The integrator backend obtains a token for the Management API.',
      line: `MANAGEMENT_TOKEN=$(curl -s -u '${integrator.clientId}:${integrator.clientSecret}' ${token} -d grant_type=client_credentials -d resource=${issuerUrl}/api -d 'scope=impersonation users' | ${member('access_token')})`,
    },
    {
      about: 'It obtains a subject token for the customer: 10 minutes, one use.',
      line: `SUBJECT_TOKEN=$(${subjectToken(customer.id, ',"context":{"ticketId":"4711"}')})`,
    },
    {
      about: 'The support agent gets an openid token of their own, to prove who acts.',
      line: `ACTOR_TOKEN=$(curl -s ${client} ${token} -d ${exchange} -d client_id=${application.clientId} -d scope=openid -d subject_token="$(${subjectToken(agent.id, '')})" -d subject_token_type=${accessToken} | ${member('access_token')})`,
    },
    {
      about: 'The support console exchanges the subject token for an access token to the orders API.',
      line: `ACCESS_TOKEN=$(curl -s ${client} ${token} -d ${exchange} -d client_id=${application.clientId} -d scope=read:orders -d resource=${ordersResource} -d subject_token="$SUBJECT_TOKEN" -d subject_token_type=${accessToken} -d actor_token="$ACTOR_TOKEN" -d actor_token_type=${accessToken} | ${member('access_token')})`,
    },
    {
      about: 'Call the API through the gateway: 200, and what the API received.',
      line: `curl -i ${gatewayUrl}/orders -H "Authorization: Bearer $ACCESS_TOKEN"`,
    },
    {
      about: 'Without the permission write:orders: 401 insufficient_scope.',
      line: `curl -i -X POST ${gatewayUrl}/orders -H "Authorization: Bearer $ACCESS_TOKEN" -H 'Content-Type: application/json' -d '{"item":"Cup"}'`,
    },
    {
      about: 'The subject token again: refused, it was used.',
      line: `curl -s ${client} ${token} -d ${exchange} -d client_id=${application.clientId} -d scope=read:orders -d resource=${ordersResource} -d subject_token="$SUBJECT_TOKEN" -d subject_token_type=${accessToken}; echo`,
    },
  ]
}
