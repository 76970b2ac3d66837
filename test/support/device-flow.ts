import type { Browser, Visit } from './browser.ts'
import type { CodeFlow, Person } from './code-flow.ts'
import { type Answer, type FormValues, formOf, request, type TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

/** A device and its person's browser (RFC 8628), through HTTP alone. */
export interface DeviceFlow {
  createClient(options?: { isThirdParty?: boolean; custom?: object }): Promise<TestApplication>
  /** `POST /oidc/device/auth`. Default scope: `openid offline_access`. */
  begin(client: TestApplication, parameters?: FormValues, options?: { address?: string }): Promise<Answer>
  /** The page for the code, with the code sent. */
  enter(browser: Browser, userCode: string, headers?: Record<string, string>): Promise<Visit>
  /** From the page for the code to the page that asks whether it is one's own device. */
  toConfirmation(browser: Browser, userCode: string, person: Person): Promise<Visit>
  decide(browser: Browser, confirmation: Visit, choice: 'allow' | 'deny' | 'another'): Promise<Visit>
  poll(client: TestApplication, deviceCode: string, options?: { instance?: number; form?: FormValues }): Promise<Answer>
  /** As if the last poll had been longer ago. */
  wait(deviceCode: string, seconds: number): Promise<void>
}

export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

export const createDeviceFlow = (issuer: TestIssuer, flow: CodeFlow): DeviceFlow => ({
  createClient: ({ custom = {}, ...options } = {}) =>
    flow.createClient({ ...options, custom: { isDeviceFlow: true, ...custom } }),
  begin: (client, parameters = {}, { address } = {}) =>
    request(`${issuer.url}/oidc/device/auth`, {
      method: 'POST',
      headers: address === undefined ? {} : { 'x-forwarded-for': address },
      body: formOf({ client_id: client.id, scope: 'openid offline_access', ...parameters }),
    }),
  async enter(browser, userCode, headers = {}) {
    const page = await browser.get('/device')
    return browser.submit(page, { user_code: userCode }, { headers })
  },
  async toConfirmation(browser, userCode, person) {
    const signIn = await this.enter(browser, userCode)
    return browser.submit(signIn, flow.credentials(person))
  },
  decide: (browser, page, choice) =>
    browser.submit({ ...page, forms: [choice === 'another' ? page.forms[0]! : page.forms.at(-1)!] }, { choice }),
  poll: (client, deviceCode, { instance = 0, form = {} } = {}) =>
    issuer.token(client, { grant_type: deviceGrant, device_code: deviceCode, ...form }, { instance }),
  wait: async (deviceCode, seconds) => {
    await issuer.sql(
      `UPDATE device_codes SET polled_at = polled_at - $2 * interval '1 second' WHERE digest = sha256($1::bytea)`,
      [Buffer.from(`device-code:${deviceCode}`), seconds],
    )
  },
})
