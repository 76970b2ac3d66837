import { realpath, rm, symlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { newId, randomAlphanumerics } from '../../platform/ids.ts'
import { assetUrl } from '../../platform/module-url.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { Service } from '../cli/serve.ts'
import { banner } from './banner.ts'
import { type DemoApi, startDemoApi } from './demo-api.ts'
import { createDemoData, isDemoDataThere } from './demo-data.ts'
import { type DemoFile, demoFilePath, readDemoFile, writeDemoFile } from './demo-file.ts'
import { demoRulesFile } from './rules.ts'
import { startWebApplication, type WebApplication } from './web-application.ts'

/**
 * The demo's API is open to whoever reaches it, and the receiver of its webhooks: loopback only, whatever HOST says.
 */
const loopback = '127.0.0.1'

/**
 * The demo makes accounts and prints their credentials. Throws `StartupError` where that could be anything but a trial.
 */
export const refuseOutsideDevelopment = (environment: { [name: string]: string | undefined }) => {
  const reason = environment['DATABASE_URL']
    ? 'DATABASE_URL is set'
    : environment['NODE_ENV'] === 'production'
      ? 'NODE_ENV is production'
      : ''
  if (reason === '') return
  throw new StartupError(`The demo does not start: ${reason}, and it makes accounts whose credentials it prints.`, {
    hint: 'Start without --demo, or unset it to try the demo with an embedded database.',
  })
}

interface DemoSettings {
  SURROGATE_DATA_DIR: string
  HOST: string
  GATEWAY_PORT: number
  DEMO_PORT: number
  DEMO_WEB_PORT: number
}

export interface Demo {
  /** For the issuer and the relay: the bootstrap application, and webhooks to this machine over plain http. */
  environment: Record<string, string>
  /** The issuer's rules, where nobody set others. */
  rules: string
  /** Starts the demo API, and makes the demo's data unless an earlier start did. */
  open(service: Service, issuerUrl: string): Promise<OpenDemo>
}

export interface OpenDemo {
  gatewayFile: string
  /** For the variables of `gatewayFile`. */
  environment: Record<string, string>
  /** Completes `demo.json` and returns what to print. */
  announce(urls: { gatewayUrl: string; adminUrl: string }): Promise<string>
}

/** `folder` is where the database is: what the demo knows of it is kept beside it. */
export const prepareDemo = async (own: DemoSettings, folder: string): Promise<Demo> => {
  let demo = (await readDemoFile(folder)) ?? newDemo()
  // Written before the application exists, so that no crash leaves one whose secret is lost.
  await writeDemoFile(folder, demo)
  await linkFrom(own.SURROGATE_DATA_DIR, folder)

  const open = async ({ lifecycle, logger }: Service, issuerUrl: string): Promise<OpenDemo> => {
    const api = await startDemoApi({ host: loopback, port: own.DEMO_PORT })
    lifecycle.onStop('demo API', () => api.close(1_000))
    const web = await startWebApplication({ host: loopback, port: own.DEMO_WEB_PORT })
    lifecycle.onStop('demo web application', () => web.close(1_000))
    const data = await ensureData(demo, { issuerUrl, api, web })
    demo = { ...demo, issuerUrl, apiUrl: api.url, webUrl: web.url, data }
    await writeDemoFile(folder, demo)
    logger.info({ file: demoFilePath(folder) }, 'demo data is ready; webhooks may go to this machine over http')
    return {
      gatewayFile: fileURLToPath(assetUrl('./gateway.yaml', import.meta.url)),
      environment: {
        HOST: own.HOST,
        GATEWAY_PORT: String(own.GATEWAY_PORT),
        DEMO_ISSUER: `${issuerUrl}/oidc`,
        DEMO_API_URL: api.url,
        GATEWAY_CLIENT_ID: data.gateway.clientId,
        GATEWAY_CLIENT_SECRET: data.gateway.clientSecret,
      },
      async announce({ gatewayUrl, adminUrl }) {
        demo = { ...demo, gatewayUrl }
        const { ordersResource, webApplication: client, integrator: backend, agentRole: role } = data
        const support = { role, managementApi: `${issuerUrl}/api`, backend }
        await web.use({ issuer: `${issuerUrl}/oidc`, client, support, gatewayUrl, ordersResource })
        await writeDemoFile(folder, demo)
        return banner(demo, { dataDir: folder, adminUrl })
      },
    }
  }
  return {
    environment: {
      BOOTSTRAP_CLIENT_ID: demo.bootstrap.clientId,
      BOOTSTRAP_CLIENT_SECRET: demo.bootstrap.clientSecret,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_NETWORKS: [process.env['WEBHOOK_ALLOWED_NETWORKS'], `${loopback}/32`].filter(Boolean).join(','),
    },
    rules: demoRulesFile,
    open,
  }
}

const newDemo = (): DemoFile => ({
  issuerUrl: '',
  gatewayUrl: '',
  apiUrl: '',
  webUrl: '',
  bootstrap: { clientId: newId(), clientSecret: randomAlphanumerics(43) },
})

const ensureData = async (
  demo: DemoFile,
  { issuerUrl, api, web }: { issuerUrl: string; api: DemoApi; web: WebApplication },
) => {
  const kept =
    demo.issuerUrl === issuerUrl && demo.apiUrl === api.url && demo.webUrl === web.url && (await isDemoDataThere(demo))
  const data =
    kept && demo.data
      ? demo.data
      : await createDemoData({ issuerUrl, apiUrl: api.url, webUrl: web.url, bootstrap: demo.bootstrap })
  api.trustWebhooks(data.webhook.secret)
  return data
}

/** Where the data had to go elsewhere, `npm run demo` still finds the file in the data folder that was asked for. */
const linkFrom = async (dataDir: string, folder: string) => {
  if ((await realpath(dataDir)) === folder) return
  await rm(demoFilePath(dataDir), { force: true })
  await symlink(demoFilePath(folder), demoFilePath(dataDir))
}
