/**
 * Tests whether an IP address belongs to the public internet. An address that is not certainly public counts as not
 * public.
 */

const v4Form = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

function readV4(text: string): number | undefined {
  const parts = v4Form.exec(text)?.slice(1).map(Number)
  if (!parts || parts.some((part) => part > 255)) return undefined
  return parts.reduce((value, part) => value * 256 + part, 0)
}

const v4 = (text: string, bits: number) => ({ prefix: readV4(text)!, size: 2 ** (32 - bits) })

/** The IPv4 ranges that are not public: IANA's special-purpose registry, multicast, and the reserved rest. */
const closedV4 = [
  v4('0.0.0.0', 8),
  v4('10.0.0.0', 8),
  v4('100.64.0.0', 10),
  v4('127.0.0.0', 8),
  v4('169.254.0.0', 16),
  v4('172.16.0.0', 12),
  v4('192.0.0.0', 24),
  v4('192.0.2.0', 24),
  v4('192.31.196.0', 24),
  v4('192.52.193.0', 24),
  v4('192.88.99.0', 24),
  v4('192.168.0.0', 16),
  v4('192.175.48.0', 24),
  v4('198.18.0.0', 15),
  v4('198.51.100.0', 24),
  v4('203.0.113.0', 24),
  v4('224.0.0.0', 4),
  v4('240.0.0.0', 4),
]

const isPublicV4 = (value: number): boolean =>
  !closedV4.some(({ prefix, size }) => value >= prefix && value < prefix + size)

/** Returns the eight groups of an IPv6 address, or undefined for anything else, zones included. */
function readV6(text: string): number[] | undefined {
  const dotted = /^(.*:)(\d{1,3}(?:\.\d{1,3}){3})$/.exec(text)
  const tail = dotted ? readV4(dotted[2]!) : 0
  if (tail === undefined) return undefined
  const plain = dotted
    ? `${dotted[1]}${Math.floor(tail / 65_536).toString(16)}:${(tail % 65_536).toString(16)}`
    : text
  const halves = plain.split('::')
  if (halves.length > 2) return undefined
  const groupsOf = (half: string) => (half === '' ? [] : half.split(':'))
  const [head, rest] = [groupsOf(halves[0]!), groupsOf(halves[1] ?? '')]
  const missing = 8 - head.length - rest.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...rest]
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : undefined
}

/**
 * Whether an IPv6 address is public: only 2000::/3 is assigned, and ranges within it are reserved for tunnels,
 * protocols or documentation.
 */
function isPublicV6(groups: number[]): boolean {
  const [first = 0, second = 0] = groups
  if (first < 0x2000 || first > 0x3fff) return false
  // These ranges are 2001::/23 (Teredo, ORCHID and others), documentation, 6to4, and 3fff::/20.
  if (first === 0x2001 && (second < 0x200 || second === 0xdb8)) return false
  if (first === 0x2002 || (first === 0x3fff && second < 0x1000)) return false
  return !(first === 0x2620 && second === 0x4f && groups[2] === 0x8000)
}

/** Whether a text is a public IP address; false for every text that is not an address in its usual form. */
export function isPublicAddress(text: string): boolean {
  const value = readV4(text)
  if (value !== undefined) return isPublicV4(value)
  const groups = readV6(text)
  return groups !== undefined && isPublicV6(groups)
}
