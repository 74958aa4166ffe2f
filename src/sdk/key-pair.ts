/** Ed25519 by Web Crypto, which Node and browsers have. */

export type KeyPair = {
  /** The public key that is registered: base64 of its 32 bytes. */
  publicKey: string
  /** The key that signs: base64 of its 32 bytes, which must stay secret. */
  secretKey: string
  /** Returns base64 of the signature over the UTF-8 bytes of a text. */
  sign(text: string): Promise<string>
}

const algorithm = 'Ed25519'
/** PKCS #8 puts these bytes before the 32 bytes of an Ed25519 key (RFC 8410). */
const pkcs8Prefix = Uint8Array.from([
  0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
])

const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

function fromBase64(text: string): Uint8Array {
  const standard = text.trim().replaceAll('-', '+').replaceAll('_', '/')
  try {
    return Uint8Array.from(atob(standard), (letter) => letter.charCodeAt(0))
  } catch {
    throw new TypeError('The secret key is not base64 text')
  }
}

export async function createKeyPair(): Promise<KeyPair> {
  return importKeyPair(toBase64(crypto.getRandomValues(new Uint8Array(32))))
}

/** Makes the pair of a secret key: base64 of its 32 bytes, or of these followed by the 32 bytes of the public key. */
export async function importKeyPair(secretKey: string): Promise<KeyPair> {
  const bytes = fromBase64(secretKey)
  if (bytes.length !== 32 && bytes.length !== 64)
    throw new TypeError('A secret key has 32 bytes, or 64 with its public key')
  const seed = bytes.slice(0, 32)
  const encoded = Uint8Array.from([...pkcs8Prefix, ...seed])
  const privateKey = await crypto.subtle.importKey('pkcs8', encoded, algorithm, true, ['sign'])
  const { x } = await crypto.subtle.exportKey('jwk', privateKey)
  const publicBytes = fromBase64(x ?? '')
  if (bytes.length === 64 && toBase64(bytes.slice(32)) !== toBase64(publicBytes))
    throw new TypeError('The second half of the secret key is not its public key')
  return {
    publicKey: toBase64(publicBytes),
    secretKey: toBase64(seed),
    async sign(text) {
      const signature = await crypto.subtle.sign(algorithm, privateKey, new TextEncoder().encode(text))
      return toBase64(new Uint8Array(signature))
    },
  }
}
