export type ServerCertificate = { cert: string; key: string }
