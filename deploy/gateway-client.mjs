// Makes the application by which a gateway reads the revocation feed: a machine-to-machine one that holds the management permission
// "revocations" and nothing else. Runs beside the issuer, with its BASE_URL and BOOTSTRAP_* settings; prints lines for deploy/.env.
// Each run makes another one: delete what you no longer use.
const { BASE_URL, BOOTSTRAP_CLIENT_ID: id, BOOTSTRAP_CLIENT_SECRET: secret, PORT = '3001' } = process.env
if (!BASE_URL || !id || !secret) throw new Error('BASE_URL, BOOTSTRAP_CLIENT_ID and BOOTSTRAP_CLIENT_SECRET must be set.')
const issuer = `http://127.0.0.1:${PORT}`
const resource = `${BASE_URL}/api`

const answerOf = async (response) => {
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

const credentials = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')
const form = new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'all' })
const token = await fetch(`${issuer}/oidc/token`, {
  method: 'POST',
  headers: { authorization: `Basic ${credentials}` },
  body: form,
}).then(answerOf)

const call = (method, path, body) =>
  fetch(`${issuer}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  }).then(answerOf)

const name = `Gateway ${new Date().toISOString()}`
const resources = await call('GET', '/resources?includeScopes=true')
const management = resources.find(({ indicator }) => indicator === resource)
const { id: scopeId } = management.scopes.find((scope) => scope.name === 'revocations')
const role = await call('POST', '/roles', {
  name,
  description: 'Reads the revocation feed',
  type: 'MachineToMachine',
  scopeIds: [scopeId],
})
const application = await call('POST', '/applications', { name, type: 'MachineToMachine' })
await call('POST', `/applications/${application.id}/roles`, { roleIds: [role.id] })
const { value } = await call('POST', `/applications/${application.id}/secrets`, { name: 'gateway' })
process.stdout.write(`GATEWAY_CLIENT_ID=${application.id}\nGATEWAY_CLIENT_SECRET=${value}\n`)
