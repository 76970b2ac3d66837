/** What the reader types: npm scripts in a checkout, the command line where the package is installed. */
const checkout = import.meta.url.endsWith('.ts')

export const howToRun = {
  start: checkout ? 'npm start' : 'npx surrogate start --demo',
  surrogate: checkout ? 'npm run -s surrogate --' : 'npx surrogate',
  demo: checkout ? 'npm run demo' : 'npx surrogate demo',
}
