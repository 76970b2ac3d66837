import { chromium } from 'playwright-core'
const [out, zoom, ...files] = process.argv.slice(2)
const b = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--allow-file-access-from-files'] })
const p = await b.newPage({ viewport: { width: 2400, height: 800 } })
import { writeFileSync } from 'node:fs'
writeFileSync('/tmp/shots/s.html', `<body style="margin:0;display:inline-flex;gap:10px;background:#888;align-items:start;zoom:${zoom}">${files.map((f) => `<img src="file://${f}">`).join('')}`)
await p.goto('file:///tmp/shots/s.html')
await p.locator('body').screenshot({ path: out })
await b.close()
