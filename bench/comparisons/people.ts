import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import type { Comparison } from '../harness/comparison.ts'
import { startPostgres } from './issuer.ts'
import { measureApproval } from './people-approval.ts'
import { measureFederated } from './people-federated.ts'
import { measureLogouts } from './people-logouts.ts'
import { password } from './sign-in-world.ts'

/**
 * What people wait for, and what they cost, where others have a part in it: a sign-in by an identity provider, a
 * sign-out that many applications are told of, and a customer who allows support to act. Of ours alone.
 */
export const people: Comparison = {
  name: 'people',
  title: 'A sign-in by an identity provider, a sign-out with 100 applications, an approval, on Postgres (fsync on)',
  fixedConnections: 1,
  async run(stage, settings, progress) {
    const postgres = await startPostgres(stage)
    const { digest } = await createPasswordHasher().hash(password)
    const world = { stage, postgres, digest, rounds: settings.rounds }
    progress('sign-ins by an identity provider')
    const federated = await measureFederated(world)
    progress('sign-outs')
    const logouts = await measureLogouts(world)
    progress('approvals')
    const approval = await measureApproval(world)
    return {
      tables: [federated, logouts, approval].flatMap(({ tables }) => tables),
      figures: { federated: federated.figures, logouts: logouts.figures, approval: approval.figures },
    }
  },
}
