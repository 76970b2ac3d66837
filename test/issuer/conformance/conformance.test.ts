import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { backChannelLogout } from './back-channel-logout.ts'
import { basicOp } from './basic-op.ts'
import { configOp } from './config-op.ts'
import { startOurs } from './ours.ts'
import { rpInitiatedLogout } from './rp-initiated-logout.ts'
import type { ConformanceModule, Target, TargetName } from './target.ts'
import { startTheirs } from './theirs.ts'

/**
 * The test modules of the OpenID Foundation, against ours and against oidc-provider, which is certified: what both pass
 * shows that a module asks for the right thing. A requirement that one does not meet is explained in its module, and
 * every explanation must still be needed.
 */

const plans = {
  'Basic OP': basicOp,
  'Config OP': configOp,
  'RP-Initiated Logout OP': rpInitiatedLogout,
  'Back-Channel Logout OP': backChannelLogout,
}
const targets: Record<TargetName, () => Promise<Target>> = { ours: startOurs, theirs: startTheirs }

/** The requirements that are not met, each with what was found instead. */
const unmetBy = async (module: ConformanceModule, target: Target): Promise<Record<string, string>> => {
  const unmet: Record<string, string> = {}
  await module.run(target, (requirement, check) => {
    try {
      check()
    } catch (error) {
      unmet[requirement] = (error as Error).message
    }
  })
  return unmet
}

describe.each(Object.entries(targets))('%s', (name, start) => {
  let target: Target
  beforeAll(async () => {
    target = await start()
  })
  afterAll(() => target.close())

  describe.each(Object.entries(plans))('%s', (_, modules) => {
    const rows = Object.entries(modules).map(([id, module]) => [id, module.proves, module] as const)
    test.each(rows)('%s: %s', async (_id, _proves, module) => {
      const explained = Object.keys(module.differs?.[name as TargetName] ?? {})
      const unmet = await unmetBy(module, target)
      expect(Object.fromEntries(Object.entries(unmet).filter(([key]) => !explained.includes(key)))).toEqual({})
      expect(Object.keys(unmet).sort()).toEqual(explained.sort())
    })
  })
})
