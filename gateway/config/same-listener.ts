interface Address {
  host: string
  port: number
}

/** Whether two listeners would need one port. One that the system chooses is never the same. */
export const isSameListener = (one: Address, other: Address): boolean => {
  if (one.port !== other.port || one.port === 0) return false
  return one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host)
}

const isEveryAddress = (host: string): boolean => host === '0.0.0.0' || host === '::'
