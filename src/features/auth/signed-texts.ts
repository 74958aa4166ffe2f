/** These are the texts that keys sign. Each has its own prefix, so that no signature fits two purposes. */

export const challengeText = (baseUrl: string, nonce: string, expires: Date): string =>
  `portico-register:v1:${baseUrl}:${nonce}:${Math.floor(expires.getTime() / 1000)}`

/**
 * An agent id always has 30 characters, so its concatenation with a timestamp is unambiguous. The decimal form is the
 * documented one; the 8-byte form serves clients that encode the timestamp as a binary integer.
 */
export function tokenMessages(agentId: string, timestamp: number): Uint8Array[] {
  const binary = Buffer.alloc(8)
  binary.writeBigInt64BE(BigInt(timestamp))
  return [Buffer.from(`${agentId}${timestamp}`), Buffer.concat([Buffer.from(agentId), binary])]
}

type SignedText = { operation: string; agentId: string; timestamp: number; says: string | undefined }
export const actMessage = ({ operation, agentId, timestamp, says }: SignedText): Uint8Array =>
  Buffer.from(
    [`portico-${operation}:v1:${agentId}:${timestamp}`, ...(says === undefined ? [] : [says])].join(':'),
  )

const agentIdPattern = /^agt_[0-9A-HJKMNP-TV-Z]{26}$/
export const isAgentId = (text: string): boolean => agentIdPattern.test(text)

const tokenPattern = /^agt_[A-Za-z0-9_-]{43}$/
/** A token and an agent id differ in nothing but their length. */
export const isToken = (text: string): boolean => tokenPattern.test(text)
