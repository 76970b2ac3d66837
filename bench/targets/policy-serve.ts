import { fileURLToPath } from 'node:url'
import { startInstalled } from '../harness/installed.ts'
import { runServer } from '../harness/server.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

/** `surrogate policy serve` over some rules, as the command runs it. `files`: by name. */
runServer(({ files }: { files: Record<string, string> }) =>
  startInstalled({
    files: () => files,
    command: ({ folder, port }) => ({
      name: process.execPath,
      args: [surrogate, 'policy', 'serve', folder, '--addr', `127.0.0.1:${port}`],
    }),
  }),
)
