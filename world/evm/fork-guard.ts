import type { IncomingMessage } from 'node:http'

/** Methods of anvil that make it connect to an address that the caller names. */
const forkMethods = /^(anvil|hardhat)_(reset|setRpcUrl)$/
/** Parses only bodies that may contain such a method; `\u` may spell one by escapes. */
const hint = /_reset|RpcUrl|\\u/

type Call = { method?: unknown; params?: unknown } | null

const isForkCall = ({ method, params }: NonNullable<Call>) =>
  typeof method === 'string' &&
  forkMethods.test(method) &&
  (method.endsWith('Url') || /"forking"|"jsonRpcUrl"/.test(JSON.stringify(params ?? [])))

/** Rejects calls that fork a chain: the caller could reach other machines through this one. */
export const forkRejectionReason = (_incoming: IncomingMessage, body: Buffer): string | undefined => {
  const text = body.toString()
  if (!hint.test(text)) return undefined
  try {
    const parsed = JSON.parse(text) as Call | Call[]
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    return calls.some((call) => call !== null && typeof call === 'object' && isForkCall(call))
      ? 'The chains of the world do not fork from other nodes.'
      : undefined
  } catch {
    return undefined
  }
}
