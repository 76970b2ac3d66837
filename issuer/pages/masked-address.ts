/** As much of an address as its owner needs to know it by, and too little for anybody else to use it. */
export const maskedAddress = (address: string): string => {
  const at = address.lastIndexOf('@')
  if (at < 0) return `•••• ${address.slice(-2)}`
  const [first = ''] = address
  return `${first}•••${address.slice(at)}`
}
