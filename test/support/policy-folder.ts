import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startTestGateway } from './gateway.ts'
import { inspectionAudience, inspectionClient } from './inspection.ts'
import type { TokenIssuer } from './token-issuer.ts'

/** The head of a file of rules with an entrypoint that gateways ask. */
export const ruleHeader = 'package surrogate.gateway\n\n# METADATA\n# entrypoint: true\n'

export const shippedRules = () => readFile(new URL('../../policies/gateway/decision.rego', import.meta.url), 'utf8')

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** A gateway that can be inspected, with rules in a folder of its own. */
export const startPolicyFolder = async (
  files: Record<string, string>,
  config: Omit<NonNullable<Parameters<typeof startTestGateway>[0]>, 'config' | 'policies'> & {
    inspection?: object
    policies?: object
    members?: Record<string, unknown> | ((parts: { issuer: TokenIssuer }) => Record<string, unknown>)
  } = {},
) => {
  const { inspection, policies, members, ...options } = config
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-policy-folder-'))
  const write = async (name: string, text: string) => {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const gateway = await startTestGateway({
    ...options,
    config: (parts) => ({
      inspection: { port: 0, audience: inspectionAudience, ...inspection },
      policies: { path: folder, ...policies },
      ...(typeof members === 'function' ? members(parts) : members),
    }),
  })
  const client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
  return {
    folder,
    write,
    read: (name: string) => readFile(join(folder, name), 'utf8'),
    gateway,
    client,
    put: async (files: object, scope = 'edit') => {
      const answer = await client.call('/policies/files', {
        method: 'PUT',
        body: JSON.stringify({ files }),
        claims: { scope, sub: 'alice' },
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    async close() {
      await gateway.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
