// Preloaded by every npm script; plain old JavaScript, so that any Node can say this instead of a syntax error.
var major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    'Surrogate needs Node 24 or newer, and this is ' +
      process.version +
      '. Run "npm ci" in this folder: on Linux it brings Node 24 with it; elsewhere install Node 24 (https://nodejs.org).',
  )
  process.exit(2)
}
// Compiled code is kept, so that a later start reads no TypeScript: a third of a second and 20 MB less. Beside the dependencies, not in
// the shared temp folder where others could plant code. Where this user may not write, Node goes on without.
require('node:module').enableCompileCache(require('node:path').join(__dirname, '../node_modules/.cache/surrogate'))
