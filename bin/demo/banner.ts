import { howToRun } from '../cli/how-to-run.ts'
import { curlLines, loginLine } from './curl-lines.ts'
import { type DemoFile, demoFilePath } from './demo-file.ts'

/** What `start --demo` prints once everything answers: where things are, the credentials, and the flow line by line. */
export const banner = (demo: DemoFile, { dataDir, adminUrl }: { dataDir: string; adminUrl: string }): string => {
  const rows = (title: string, entries: readonly (readonly [string, string])[]) => [
    '',
    title,
    ...entries.map(([name, value]) => `  ${name.padEnd(26)}${value}`),
  ]
  const { data } = demo
  const credentials =
    data &&
    ([
      ['Integrator backend', `${data.integrator.clientId} : ${data.integrator.clientSecret}`],
      ['Support console', `${data.application.clientId} : ${data.application.clientSecret}`],
      ['Web application', `${data.webApplication.clientId} : ${data.webApplication.clientSecret}`],
      ['Gateway', `${data.gateway.clientId} : ${data.gateway.clientSecret}`],
      ['Bootstrap (every scope)', `${demo.bootstrap.clientId} : ${demo.bootstrap.clientSecret}`],
      ['User demo_customer', `id ${data.customer.id}, password ${data.customer.password}`],
      ['User demo_private', `id ${data.privateCustomer.id}, password ${data.privateCustomer.password}`],
      ['User demo_agent', `id ${data.agent.id}, password ${data.agent.password}`],
      ['Webhook', `id ${data.webhook.id}, secret ${data.webhook.secret}`],
    ] as const)

  return [
    'Surrogate is running, as a demo: its webhooks may go to this machine over plain http.',
    ...rows('Where things are', [
      [
        'Web application',
        `${demo.webUrl}  (sign in as demo_customer, as demo_agent to act for customers, or create an account)`,
      ],
      ['Gateway', demo.gatewayUrl],
      ['Token issuer', `${demo.issuerUrl}/oidc/.well-known/openid-configuration`],
      ['Management API', `${demo.issuerUrl}/api  (to read: ${demo.issuerUrl}/api/docs)`],
      ['Demo API', `${demo.apiUrl}  (behind the gateway; also receives the webhook: /webhooks)`],
      [
        'Mails and text messages',
        `here, with their codes; in another terminal: ${howToRun.surrogate} messages --follow`,
      ],
      ['Health and metrics', `${adminUrl}/readyz  ${adminUrl}/metrics`],
      ['Data', dataDir],
    ]),
    ...rows(`Credentials (client id : secret), kept in ${demoFilePath(dataDir)}`, credentials ?? []),
    '',
    `Signing in without a browser, every step and the tokens shown (or open ${demo.webUrl})`,
    `  ${loginLine(demo)}`,
    '',
    `The impersonation flow, line by line. All of it, with a registration and a second factor: "${howToRun.demo}" in another terminal`,
    ...curlLines(demo).flatMap(({ about, line }) => [`  # ${about}`, `  ${line}`]),
    '',
    'Ctrl-C stops everything.',
    '',
  ].join('\n')
}
