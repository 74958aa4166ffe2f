import { createHmac, timingSafeEqual } from 'node:crypto'
import { keccak256 } from '#world/venue-core/keccak.ts'
import {
  addressWord,
  hashText,
  hexBytes,
  joinBytes,
  recoverSigner,
  typedDataDigest,
  uintBytes,
} from '#world/venue-core/signature.ts'
import { HttpError, type Request } from './http.ts'
import type { ApiKey, State } from './state.ts'

const chainId = 137
const statement = 'This message attests that I control the given wallet'
const clockSkewSeconds = 300

const authDomain = keccak256(
  joinBytes(
    hashText('EIP712Domain(string name,string version,uint256 chainId)'),
    hashText('ClobAuthDomain'),
    hashText('1'),
    uintBytes(chainId, 32),
  ),
)
const authType = hashText('ClobAuth(address address,string timestamp,uint256 nonce,string message)')

const authDigest = (address: string, timestamp: string, nonce: bigint): Uint8Array =>
  typedDataDigest(
    authDomain,
    keccak256(
      joinBytes(
        authType,
        addressWord(address),
        hashText(timestamp),
        uintBytes(nonce, 32),
        hashText(statement),
      ),
    ),
  )

const headerOf = ({ headers }: Request, name: string): string => {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}

const isRecent = (timestamp: string, nowMs: number): boolean => {
  const seconds = Number(timestamp)
  // Clients have the machine's clock, also where a test has moved the venue's.
  return [nowMs, Date.now()].some((ms) => Math.abs(seconds - ms / 1_000) <= clockSkewSeconds)
}

const reject = (message: string): never => {
  throw new HttpError(401, message)
}
const rejectL1 = (): never => reject('Invalid L1 Request headers')

/** The address that signed for its keys, and the nonce of the key. */
export const requireL1 = (request: Request, nowMs: number): { address: string; nonce: string } => {
  const address = headerOf(request, 'poly_address').toLowerCase()
  const signature = headerOf(request, 'poly_signature')
  const timestamp = headerOf(request, 'poly_timestamp')
  const nonce = headerOf(request, 'poly_nonce') || '0'
  const isFormed =
    /^0x[0-9a-f]{40}$/.test(address) && /^0x[0-9a-fA-F]{130}$/.test(signature) && /^[0-9]{1,20}$/.test(nonce)
  if (!isFormed || !isRecent(timestamp, nowMs)) return rejectL1()
  const v = Number.parseInt(signature.slice(130), 16)
  const parity = v >= 27 ? v - 27 : v
  if (parity !== 0 && parity !== 1) return rejectL1()
  const digest = authDigest(address, timestamp, BigInt(nonce))
  const signer = recoverSigner(digest, { rs: hexBytes(signature.slice(2, 130)), parity })
  return signer === address ? { address, nonce } : rejectL1()
}

const hex = (state: State, purpose: string): string =>
  createHmac('sha256', `world ${state.seed} ${state.genesisMs}`).update(purpose).digest('hex')

/** Keys derive from the address and the nonce, so that a lost key is derived again. */
export const deriveKey = (state: State, address: string, nonce: string): ApiKey => {
  const id = hex(state, `key id ${address} ${nonce}`)
  const secret = Buffer.from(hex(state, `key secret ${address} ${nonce}`), 'hex').toString('base64')
  return {
    key: `${id.slice(0, 8)}-${id.slice(8, 12)}-4${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20, 32)}`,
    // As upstream: the alphabet of URLs, with padding.
    secret: secret.replaceAll('+', '-').replaceAll('/', '_'),
    passphrase: hex(state, `key passphrase ${address} ${nonce}`),
    address,
    nonce,
    createdMs: state.nowMs,
  }
}

const hmacOf = ({ secret }: ApiKey, message: string): Buffer =>
  createHmac('sha256', Buffer.from(secret.replaceAll('-', '+').replaceAll('_', '/'), 'base64'))
    .update(message)
    .digest()

const isSigned = (key: ApiKey, message: string, signature: string): boolean => {
  const given = Buffer.from(signature.replaceAll('-', '+').replaceAll('_', '/'), 'base64')
  const wanted = hmacOf(key, message)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

/** The path is signed without its query. */
const messageOf = (request: Request, timestamp: string): string =>
  `${timestamp}${request.method}${request.path}${request.text}`

export const requireL2 = (request: Request, state: State): ApiKey => {
  const key = state.keys.get(headerOf(request, 'poly_api_key'))
  const timestamp = headerOf(request, 'poly_timestamp')
  if (
    !key ||
    headerOf(request, 'poly_passphrase') !== key.passphrase ||
    headerOf(request, 'poly_address').toLowerCase() !== key.address ||
    !isRecent(timestamp, state.nowMs) ||
    !isSigned(key, messageOf(request, timestamp), headerOf(request, 'poly_signature'))
  )
    return reject('Unauthorized/Invalid api key')
  return key
}

/** The first frame of a user socket carries the credentials themselves. */
export const keyOfCredentials = (state: State, auth: unknown): ApiKey | undefined => {
  const { apiKey, secret, passphrase } = (auth ?? {}) as Record<string, unknown>
  const key = state.keys.get(String(apiKey))
  return key && key.secret === secret && key.passphrase === passphrase ? key : undefined
}

/** Who may use the relayer, and for whom: one account, or any. */
export type RelayerCaller = { kind: 'builder' } | { kind: 'relayer'; address: string }

export const requireRelayer = (request: Request, state: State): RelayerCaller => {
  const relayerKey = state.relayerKeys.get(headerOf(request, 'relayer_api_key'))
  if (relayerKey && headerOf(request, 'relayer_api_key_address').toLowerCase() === relayerKey.address)
    return { kind: 'relayer', address: relayerKey.address }
  const builder = state.builderKeys.get(headerOf(request, 'poly_builder_api_key'))
  const timestamp = headerOf(request, 'poly_builder_timestamp')
  const isBuilder =
    builder !== undefined &&
    isRecent(timestamp, state.nowMs) &&
    headerOf(request, 'poly_builder_passphrase') === builder.passphrase &&
    isSigned(builder, messageOf(request, timestamp), headerOf(request, 'poly_builder_signature'))
  if (isBuilder) return { kind: 'builder' }
  return reject('invalid authorization')
}
