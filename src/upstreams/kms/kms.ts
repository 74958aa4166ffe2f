import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type * as T from '#kernel/contract/schema.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { Decrypted, Encrypted, ErrorReply } from './wire.ts'

export type VaultTransit = {
  readonly id: string
  wrap(dek: Uint8Array, aad: string): Promise<Uint8Array>
  unwrap(wrapped: Uint8Array, aad: string): Promise<Uint8Array>
}

type Options = {
  net: Net
  /** Identifies this key in every row that it wraps; never reuse an id for another key. */
  id: string
  url: string
  token: string
  key: string
  mount?: string
  namespace?: string
}

const timeoutMs = 5_000
const bytesMax = 64 * 1024
const dekBytes = 32

const unexpectedReply = (cause?: unknown) =>
  new Fault('upstream_changed', 'The key service sent an unexpected reply', { cause })

/** A key-encryption key that never leaves Vault: each call is one request to its transit engine. */
export function createVaultTransit(options: Options): VaultTransit {
  const { net, id, url, token, key, mount = 'transit', namespace } = options
  const root = new URL(`v1/${mount}/`, url.endsWith('/') ? url : `${url}/`)
  const headers = {
    'content-type': 'application/json',
    'x-vault-request': 'true',
    'x-vault-token': token,
    ...(namespace && { 'x-vault-namespace': namespace }),
  }

  const call = async <S extends T.TSchema>(verb: string, fields: object, shape: S): Promise<T.Static<S>> => {
    const target = new URL(`${verb}/${encodeURIComponent(key)}`, root).href
    const body = JSON.stringify(fields)
    const request = { url: target, method: 'POST', headers, body, timeoutMs, maxBytes: bytesMax }
    // Wrapping and unwrapping have no side effects, so a missing reply leaves no unknown outcome.
    const reply = await net.fetch(request).catch((cause: unknown) => {
      throw new Fault('unavailable', 'The key service did not answer', { cause })
    })
    const json = parseJson(reply.body)
    if (reply.status !== 200)
      throw refusal(reply.status, fits(ErrorReply, json) ? json.errors : ['no reason given'])
    if (!fits(shape, json)) throw unexpectedReply()
    return json
  }

  /**
   * A derived key is bound by `context`, and any other AEAD key by `associated_data`. Vault ignores the one that
   * does not apply, so both are sent: the data key is bound to its row for either type of key.
   */
  const bindingOf = (aad: string) => {
    const text = Buffer.from(aad).toString('base64')
    return { context: text, associated_data: text }
  }

  return {
    id,
    async wrap(dek, aad) {
      const plaintext = Buffer.from(dek).toString('base64')
      const { data } = await call('encrypt', { plaintext, ...bindingOf(aad) }, Encrypted)
      return Buffer.from(data.ciphertext)
    },
    async unwrap(wrapped, aad) {
      const ciphertext = Buffer.from(wrapped).toString()
      const { data } = await call('decrypt', { ciphertext, ...bindingOf(aad) }, Decrypted)
      const dek = Buffer.from(data.plaintext, 'base64')
      if (dek.length !== dekBytes) throw unexpectedReply()
      return dek
    },
  }
}

/** A 400 is permanent: the blob, the key or the bound data does not match. */
function refusal(status: number, reasons: readonly string[]): Fault {
  const cause = new Error(`vault ${status}: ${reasons.join('; ')}`)
  const code = status === 400 ? 'upstream_rejected' : 'unavailable'
  return new Fault(code, 'The key service rejected the request', { cause })
}
