import { createHash } from 'node:crypto'
import { nkeys } from '@nats-io/transport-node'

/**
 * A server's configuration with an operator, an account and a user; and the credentials file of that user, in the
 * format that NATS tools make (JWTs signed by nkeys, algorithm `ed25519-nkey`).
 */
export const natsAccounts = () => {
  const operator = nkeys.createOperator()
  const account = nkeys.createAccount()
  const user = nkeys.createUser()
  const unlimited = { subs: -1, conn: -1, leaf: -1, imports: -1, exports: -1, data: -1, payload: -1, wildcards: true }

  const operatorToken = token(operator, operator, 'test', { type: 'operator', version: 2 })
  const accountToken = token(operator, account, 'test', {
    type: 'account',
    version: 2,
    limits: unlimited,
    default_permissions: { pub: {}, sub: {} },
  })
  const userToken = token(account, user, 'test', {
    type: 'user',
    version: 2,
    subs: -1,
    data: -1,
    payload: -1,
    pub: {},
    sub: {},
  })
  return {
    config: `operator: "${operatorToken}"\nresolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: "${accountToken}" }`,
    credentials: [
      '-----BEGIN NATS USER JWT-----',
      userToken,
      '------END NATS USER JWT------',
      '',
      '-----BEGIN USER NKEY SEED-----',
      new TextDecoder().decode(user.getSeed()),
      '------END USER NKEY SEED------',
      '',
    ].join('\n'),
  }
}

type KeyPair = ReturnType<typeof nkeys.createUser>

const token = (issuer: KeyPair, subject: KeyPair, name: string, nats: object): string => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = {
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name,
    sub: subject.getPublicKey(),
    nats,
  }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('base64url')
  const signed = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode({ jti, ...claims })}`
  return `${signed}.${Buffer.from(issuer.sign(new TextEncoder().encode(signed))).toString('base64url')}`
}
