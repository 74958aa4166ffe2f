/**
 * Vault's transit engine over HTTP: keys, encrypt, decrypt, rotate, with derived keys and associated data, and the
 * answers that Vault gives to a wrong token, an unknown key and an altered ciphertext.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

type TransitKey = { derived: boolean; versions: Buffer[] }
type Answer = { status: number; body: object }
type Body = Record<string, unknown>

export type KmsEmulator = AsyncDisposable & {
  url: string
  token: string
  /** Requests of each verb so far. */
  count(verb: string): number
  seal(on: boolean): void
}

const errorReply = (status: number, ...errors: string[]): Answer => ({ status, body: { errors } })
const text = (body: Body, field: string) => (typeof body[field] === 'string' ? (body[field] as string) : '')

export async function kmsEmulator(): Promise<KmsEmulator> {
  const token = `hvs.${randomBytes(18).toString('base64url')}`
  const keys = new Map<string, TransitKey>()
  const counts = new Map<string, number>()
  let sealed = false

  const answer = (path: string, given: string | undefined, body: Body): Answer => {
    const [, verb = '', name = '', rotate] = /^\/v1\/transit\/(\w+)\/([\w.-]+)(\/rotate)?$/.exec(path) ?? []
    counts.set(verb, (counts.get(verb) ?? 0) + 1)
    if (sealed) return errorReply(503, 'Vault is sealed')
    if (given !== token) return errorReply(403, 'permission denied')
    const key = keys.get(name)
    if (verb === 'keys' && !rotate) {
      if (!key) keys.set(name, { derived: body.derived === true, versions: [randomBytes(32)] })
      return { status: 200, body: { data: { name, type: 'aes256-gcm96' } } }
    }
    if (!key) return errorReply(400, 'encryption key not found')
    if (verb === 'keys') {
      key.versions.push(randomBytes(32))
      return { status: 200, body: { data: { latest_version: key.versions.length } } }
    }
    if (key.derived && !text(body, 'context'))
      return errorReply(400, 'missing "context" for key derivation; the key was created using a derived key')
    if (verb === 'encrypt') return { status: 200, body: { data: encrypt(key, body) } }
    if (verb === 'decrypt') return decrypt(key, body)
    return errorReply(404, 'unsupported path')
  }

  const server = createServer(async (incoming, outgoing) => {
    const body = await read(incoming)
    const given = incoming.headers['x-vault-token']
    const reply =
      incoming.method === 'POST' && body
        ? answer(incoming.url ?? '', Array.isArray(given) ? given[0] : given, body)
        : errorReply(405, 'unsupported operation')
    outgoing.writeHead(reply.status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    count: (verb) => counts.get(verb) ?? 0,
    seal(on) {
      sealed = on
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const keyOf = (key: TransitKey, version: number, body: Body): Buffer | undefined => {
  const secret = key.versions[version - 1]
  if (!secret || !key.derived) return secret
  return Buffer.from(hkdfSync('sha256', secret, '', Buffer.from(text(body, 'context'), 'base64'), 32))
}

function encrypt(key: TransitKey, body: Body) {
  const version = key.versions.length
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', keyOf(key, version, body) as Buffer, iv)
  cipher.setAAD(Buffer.from(text(body, 'associated_data'), 'base64'))
  const plain = Buffer.from(text(body, 'plaintext'), 'base64')
  const sealed = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  return { ciphertext: `vault:v${version}:${sealed.toString('base64')}`, key_version: version }
}

function decrypt(key: TransitKey, body: Body): Answer {
  const [, version, base64] = /^vault:v(\d+):(.+)$/.exec(text(body, 'ciphertext')) ?? []
  const secret = version ? keyOf(key, Number(version), body) : undefined
  if (!secret || !base64) return errorReply(400, 'invalid ciphertext: no prefix')
  try {
    const sealed = Buffer.from(base64, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(text(body, 'associated_data'), 'base64')).setAuthTag(sealed.subarray(-16))
    const plain = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
    return { status: 200, body: { data: { plaintext: plain.toString('base64') } } }
  } catch {
    return errorReply(400, 'cipher: message authentication failed')
  }
}

async function read(incoming: IncomingMessage): Promise<Body | undefined> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  try {
    return JSON.parse(Buffer.concat(chunks).toString() || '{}') as Body
  } catch {
    return undefined
  }
}
