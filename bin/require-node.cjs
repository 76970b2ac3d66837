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
