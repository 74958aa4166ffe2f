/** An authenticator in code, which signs what a test wants: also what an honest one never would. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

type Cbor = number | string | Buffer | Map<Cbor, Cbor>

const head = (major: number, value: number): Buffer => {
  if (value < 24) return Buffer.from([(major << 5) | value])
  if (value < 256) return Buffer.from([(major << 5) | 24, value])
  return Buffer.from([(major << 5) | 25, value >> 8, value & 255])
}
const cbor = (value: Cbor): Buffer => {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, each]) => [cbor(key), cbor(each)])])
}
const sha256 = (bytes: string | Buffer): Buffer => createHash('sha256').update(bytes).digest()
const text = (bytes: Buffer): string => bytes.toString('base64url')

const flagOf = { present: 1, verified: 4, backupEligible: 8, hasKey: 64 }

/** What a careless or hostile authenticator does differently. */
export type Deviation = {
  origin?: string
  rpId?: string
  challenge?: string
  type?: string
  isVerified?: boolean
  isFramed?: boolean
  signCount?: number
  userHandle?: string
  statement?: { fmt: string; attStmt: Map<Cbor, Cbor> }
}
export type Challenge = {
  challenge: string
  rp?: { id: string }
  rpId?: string
  user?: { id: string }
}

export type SoftwarePasskey = {
  id: string
  userHandle: string
  count: number
  privateKey: KeyObject
}

export function createSoftwareAuthenticator(origin: string) {
  const clientData = (type: string, challenge: string, deviation: Deviation): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: deviation.type ?? type,
        challenge: deviation.challenge ?? challenge,
        origin: deviation.origin ?? origin,
        crossOrigin: deviation.isFramed ?? false,
      }),
    )
  const authenticatorData = (
    rpId: string,
    { isVerified = true, signCount = 0 }: Deviation,
    key?: Buffer,
  ): Buffer => {
    const flags = flagOf.present + (isVerified ? flagOf.verified : 0) + (key ? flagOf.hasKey : 0)
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(signCount)
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), counter, ...(key ? [key] : [])])
  }
  const jsonOf = (id: string, response: Record<string, string>): string =>
    JSON.stringify({ id, rawId: id, type: 'public-key', response, clientExtensionResults: {} })

  const authenticator = {
    /** A new passkey, or another credential under the id of a known one. */
    create(options: Challenge, deviation: Deviation & { id?: string } = {}) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
      const id = deviation.id ?? text(randomBytes(32))
      const credentialId = Buffer.from(id, 'base64url')
      const length = Buffer.alloc(2)
      length.writeUInt16BE(credentialId.length)
      const coseKey = cbor(
        new Map<Cbor, Cbor>([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, Buffer.from(x, 'base64url')],
          [-3, Buffer.from(y, 'base64url')],
        ]),
      )
      const key = Buffer.concat([Buffer.alloc(16), length, credentialId, coseKey])
      const authData = authenticatorData(deviation.rpId ?? options.rp?.id ?? '', deviation, key)
      const { fmt, attStmt } = deviation.statement ?? { fmt: 'none', attStmt: new Map<Cbor, Cbor>() }
      const attestationObject = cbor(
        new Map<Cbor, Cbor>([
          ['fmt', fmt],
          ['attStmt', attStmt],
          ['authData', authData],
        ]),
      )
      const passkey: SoftwarePasskey = {
        id,
        userHandle: options.user?.id ?? '',
        count: deviation.signCount ?? 0,
        privateKey,
      }
      const credential = jsonOf(id, {
        clientDataJSON: text(clientData('webauthn.create', options.challenge, deviation)),
        attestationObject: text(attestationObject),
      })
      return { passkey, credential }
    },
    /** A signature by the passkey. */
    sign(passkey: SoftwarePasskey, options: Challenge, deviation: Deviation = {}): string {
      const client = clientData('webauthn.get', options.challenge, deviation)
      const authData = authenticatorData(deviation.rpId ?? options.rpId ?? '', {
        signCount: passkey.count,
        ...deviation,
      })
      const signature = sign('sha256', Buffer.concat([authData, sha256(client)]), passkey.privateKey)
      return jsonOf(passkey.id, {
        clientDataJSON: text(client),
        authenticatorData: text(authData),
        signature: text(signature),
        userHandle: deviation.userHandle ?? passkey.userHandle,
      })
    },
    /** A new passkey of which nothing is kept: what the form gets. */
    answer: (options: Challenge, deviation: Deviation & { id?: string } = {}) => ({
      credential: authenticator.create(options, deviation).credential,
    }),
  }
  return authenticator
}
