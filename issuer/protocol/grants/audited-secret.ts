import type { Client } from '../clients/client.ts'

/** Which of a client's secrets was used, for the audit trail: the name, never the value. */
export const secretOf = ({ secretName }: Client): { applicationSecret?: { name: string } } =>
  secretName === undefined ? {} : { applicationSecret: { name: secretName } }
