import { expect, test } from 'vitest'
import { startWebApplication } from '../../bin/demo/web-application.ts'

test('no address stops the demo: a page anywhere may make a browser send one', async () => {
  const web = await startWebApplication({ host: '127.0.0.1', port: 0 })
  for (const path of ['//', '/\\\\', '/sign-in', '/'])
    expect((await fetch(`${web.url}${path}`, { redirect: 'manual' })).status).toBe(503)
  await web.close(0)
})
