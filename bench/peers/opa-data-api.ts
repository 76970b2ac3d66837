import { findOpa } from '../../policies/engine/index.ts'
import { startInstalled } from '../harness/installed.ts'
import { runServer } from '../harness/server.ts'

/** OPA's server over some rules, without a log. `files`: by name. */
runServer(async ({ files }: { files: Record<string, string> }) => {
  const name = await findOpa()
  return startInstalled({
    files: () => files,
    command: ({ folder, port }) => ({
      name,
      args: ['run', '--server', '--addr', `127.0.0.1:${port}`, '--log-level', 'error', '--skip-version-check', folder],
    }),
  })
})
