import { PorticoError } from './errors.ts'
import { importKeyPair } from './key-pair.ts'

/** Gives tokens from elsewhere, such as OAuth: called before each call, and with a token that the gateway refused. */
export type TokenProvider = (request: {
  refused?: string
}) => Promise<string | { token: string; expiresInSeconds?: number }>
export type Auth = { agentId: string; secretKey: string } | { token: string } | TokenProvider

export type TokenSource = {
  get(): Promise<string>
  /** Returns a token other than the refused one, or undefined if the source has no other token. */
  renew(refused: string): Promise<string | undefined>
  /** Signs an act by the key of the agent, and what it says; absent if the source has no key. */
  signAct?(operation: string, says?: string): Promise<SignedRequest>
}

export type SignedRequest = { agent_id: string; timestamp: number; signature: string }
type Issued = { token: string; expiresInSeconds?: number }
/** Exchanges a signature for a token at the gateway. */
export type RequestToken = (request: SignedRequest) => Promise<{ token: string; expires_in: number }>

/** A token is renewed this long before its end. */
const marginMs = 30_000
const attemptsMax = 3

export function createTokenSource(auth: Auth, requestToken: RequestToken): TokenSource {
  if (typeof auth === 'function') return cached(async (refused) => issuedOf(await auth(refused)))
  if ('token' in auth) return { get: async () => auth.token, renew: async () => undefined }
  const keys = signingKeys(auth, requestToken)
  return { ...cached(keys.issue), signAct: keys.signAct }
}

const issuedOf = (given: string | Issued): Issued => (typeof given === 'string' ? { token: given } : given)

/** Stores a token that has an end until shortly before that end; concurrent calls share one request for a token. */
function cached(issue: (request: { refused?: string }) => Promise<Issued>): TokenSource {
  let known: { token: string; endsAtMs: number } | undefined
  let pending: Promise<string> | undefined
  const request = async (refused?: string): Promise<string> => {
    const { token, expiresInSeconds } = await issue(refused === undefined ? {} : { refused })
    if (expiresInSeconds !== undefined)
      known = { token, endsAtMs: Date.now() + expiresInSeconds * 1_000 - marginMs }
    return token
  }
  const shared = (refused?: string): Promise<string> => {
    pending ??= request(refused).finally(() => {
      pending = undefined
    })
    return pending
  }
  return {
    get: async () => (known && Date.now() < known.endsAtMs ? known.token : shared()),
    async renew(refused) {
      // Another call may have renewed the token meanwhile.
      if (known && known.token !== refused) return known.token
      known = undefined
      const token = await shared(refused)
      return token === refused ? undefined : token
    },
  }
}

/** Signs with the time of this machine, and after a refusal with the time of the gateway. */
function signingKeys(
  { agentId, secretKey }: { agentId: string; secretKey: string },
  requestToken: RequestToken,
): { issue: () => Promise<Issued>; signAct: NonNullable<TokenSource['signAct']> } {
  const keys = importKeyPair(secretKey)
  // A wrong key is reported where the key pair is awaited, so this handler only prevents an unhandled rejection.
  keys.catch(() => {})
  let skewMs = 0
  const issue = async (attempts: number): Promise<Issued> => {
    // A timestamp in milliseconds makes it unlikely that two workers of one agent sign the same text.
    const timestamp = Date.now() + skewMs
    const signature = await (await keys).sign(`${agentId}${timestamp}`)
    try {
      const { token, expires_in } = await requestToken({ agent_id: agentId, timestamp, signature })
      return { token, expiresInSeconds: expires_in }
    } catch (error) {
      if (attempts >= attemptsMax || !(error instanceof PorticoError)) throw error
      const { server_time } = error.extras
      if (typeof server_time === 'number')
        skewMs = server_time * 1_000 - Date.now() + Math.floor(Math.random() * 1_000)
      else if (error.status !== 0) throw error
      return issue(attempts + 1)
    }
  }
  return {
    issue: () => issue(1),
    async signAct(operation, says) {
      const timestamp = Date.now() + skewMs
      const text = `portico-${operation}:v1:${agentId}:${timestamp}${says === undefined ? '' : `:${says}`}`
      return { agent_id: agentId, timestamp, signature: await (await keys).sign(text) }
    },
  }
}
