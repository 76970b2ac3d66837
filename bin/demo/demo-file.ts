import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const credentials = z.object({ clientId: z.string(), clientSecret: z.string() })
const user = z.object({ id: z.string(), username: z.string(), password: z.string() })

const demoSchema = z.object({
  issuerUrl: z.string(),
  gatewayUrl: z.string(),
  apiUrl: z.string(),
  /** The web application in which people sign in. */
  webUrl: z.string().default(''),
  /** Holds the management scope `all`; made before the database knows it, so that a crash cannot lose it. */
  bootstrap: credentials,
  /** Absent until all of it exists. */
  data: z
    .object({
      /** What an older edition made is made anew. */
      edition: z.int().default(1),
      ordersResource: z.string(),
      clockResource: z.string(),
      customer: user,
      /** Is asked before anybody acts as her. */
      privateCustomer: user,
      agent: user,
      /** Of whoever acts for customers in the web application. */
      agentRole: z.string(),
      integrator: credentials,
      application: credentials,
      webApplication: credentials,
      gateway: credentials,
      webhook: z.object({ id: z.string(), secret: z.string() }),
    })
    .optional(),
})

/** What the demo made, with its credentials; kept in the data folder, readable by its owner only. */
export type DemoFile = z.output<typeof demoSchema>
export type DemoData = NonNullable<DemoFile['data']>

export const demoFilePath = (dataDir: string) => join(dataDir, 'demo.json')

/** Undefined when there is none, or none that can be used. */
export const readDemoFile = async (dataDir: string): Promise<DemoFile | undefined> => {
  try {
    return demoSchema.parse(JSON.parse(await readFile(demoFilePath(dataDir), 'utf8')))
  } catch {
    return undefined
  }
}

/** Replaced as a whole, so that a crash leaves the old or the new one. */
export const writeDemoFile = async (dataDir: string, demo: DemoFile): Promise<void> => {
  const path = demoFilePath(dataDir)
  const draft = `${path}.new`
  await writeFile(draft, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 })
  await chmod(draft, 0o600)
  await rename(draft, path)
}
