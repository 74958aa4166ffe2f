/** The holder of one IPv6 address controls its whole /64 network, so the network counts as one address. */
export function addressKey(ip: string): string {
  if (!ip.includes(':') || ip.includes('.')) return `address:${ip}`
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter(Boolean).length
  const all = [...groups, ...Array.from({ length: missing }, () => '0'), ...(tail?.split(':') ?? [])]
  return `address:${all.slice(0, 4).join(':')}::/64`
}
