import type * as T from 'typebox'
import { Value } from 'typebox/value'
import { Agent, request } from 'undici'
import { Fault } from '#kernel/fault.ts'
import { Decrypted, Encrypted, Refused } from './wire.ts'

export type VaultTransit = AsyncDisposable & {
  readonly id: string
  wrap(dek: Uint8Array, aad: string): Promise<Uint8Array>
  unwrap(wrapped: Uint8Array, aad: string): Promise<Uint8Array>
}

type Options = {
  /** Names this key in every row that it wraps: never reuse an id for another key. */
  id: string
  url: string
  token: string
  key: string
  mount?: string
  namespace?: string
  timeoutMs?: number
}

const bytesMost = 64 * 1024
const dekBytes = 32

const away = (sentence: string, cause?: unknown) => new Fault('unavailable', sentence, { cause })

/** A key-encryption key that never leaves Vault: each call is one request to its transit engine. */
export function vaultTransit(options: Options): VaultTransit {
  const { id, url, token, key, mount = 'transit', namespace, timeoutMs = 5_000 } = options
  const dispatcher = new Agent({
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: bytesMost,
  })
  const root = new URL(`v1/${mount}/`, url.endsWith('/') ? url : `${url}/`)

  const call = async <S extends T.TSchema>(verb: string, body: object, shape: S): Promise<T.Static<S>> => {
    const answer = await post(new URL(`${verb}/${encodeURIComponent(key)}`, root), body)
    if (answer.status === 200 && Value.Check(shape, answer.json)) return answer.json as T.Static<S>
    throw refusal(answer)
  }

  const post = async (target: URL, body: object): Promise<{ status: number; json: unknown }> => {
    try {
      const reply = await request(target, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-vault-request': 'true',
          'x-vault-token': token,
          ...(namespace && { 'x-vault-namespace': namespace }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
        dispatcher,
      })
      return { status: reply.statusCode, json: await reply.body.json().catch(() => undefined) }
    } catch (cause) {
      throw away('The key service did not answer', cause)
    }
  }

  /**
   * A derived key is bound by `context`, any other AEAD key by `associated_data`. Vault ignores the one that does not
   * apply, so both are sent: the place is bound whichever way the operator made the key.
   */
  const bound = (aad: string) => {
    const text = Buffer.from(aad).toString('base64')
    return { context: text, associated_data: text }
  }

  return {
    id,
    async wrap(dek, aad) {
      const plaintext = Buffer.from(dek).toString('base64')
      const { data } = await call('encrypt', { plaintext, ...bound(aad) }, Encrypted)
      return Buffer.from(data.ciphertext)
    },
    async unwrap(wrapped, aad) {
      const ciphertext = Buffer.from(wrapped).toString()
      const { data } = await call('decrypt', { ciphertext, ...bound(aad) }, Decrypted)
      const dek = Buffer.from(data.plaintext, 'base64')
      if (dek.length !== dekBytes) throw new Fault('upstream_changed', 'The key service answered oddly')
      return dek
    },
    [Symbol.asyncDispose]: () => dispatcher.close(),
  }
}

function refusal({ status, json }: { status: number; json: unknown }): Fault {
  const cause = new Error(
    `vault ${status}: ${Value.Check(Refused, json) ? json.errors.join('; ') : 'no reason given'}`,
  )
  if (status === 200) return new Fault('upstream_changed', 'The key service answered oddly', { cause })
  return away('The key service refused the call', cause)
}
