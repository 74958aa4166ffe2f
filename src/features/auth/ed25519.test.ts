import assert from 'node:assert/strict'
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeBase64, importKey, isUsableKey, verifySignature } from './ed25519.ts'

const p = 2n ** 255n - 19n
const order = 2n ** 252n + 27742317777372353535851937790883648493n
const little = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
const big = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const message = Buffer.from('a message')

const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')
const seed = Buffer.alloc(32, 7)
const secret = createPrivateKey({ key: Buffer.concat([pkcs8Head, seed]), format: 'der', type: 'pkcs8' })
const raw = createPublicKey(secret).export({ format: 'der', type: 'spki' }).subarray(-32)

/** The scalar of the seed, derived as in RFC 8032. */
const scalar = () => {
  const half = createHash('sha512').update(seed).digest().subarray(0, 32)
  half[0] = (half[0] as number) & 248
  half[31] = ((half[31] as number) & 63) | 64
  return big(half)
}
/** A signature whose R is the point of order 1, in the given encoding. */
const signedWithNoNonce = (spelling: Buffer) => {
  const hash = createHash('sha512').update(spelling).update(raw).update(message).digest()
  return Buffer.concat([spelling, little((big(hash) * scalar()) % order)])
}

const power = (base: bigint, exponent: bigint): bigint => {
  if (exponent === 0n) return 1n
  const half = power((base * base) % p, exponent / 2n)
  return exponent % 2n ? (half * base) % p : half
}
const mod = (value: bigint) => ((value % p) + p) % p
const over = (value: bigint, by: bigint) => mod(value * power(mod(by), p - 2n))
const d = over(-121665n, 121666n)

/** Projective, so that adding needs no division: x = X/Z, y = Y/Z, T = XY/Z. */
type Point = { x: bigint; y: bigint; z: bigint; t: bigint }
const affine = (x: bigint, y: bigint): Point => ({ x, y, z: 1n, t: mod(x * y) })
const neutralPoint = affine(0n, 1n)
const add = (a: Point, b: Point): Point => {
  const [xx, yy, tt, zz] = [a.x * b.x, a.y * b.y, mod(d * mod(a.t * b.t)), a.z * b.z]
  const e = mod((a.x + a.y) * (b.x + b.y) - xx - yy)
  const [f, g, h] = [mod(zz - tt), mod(zz + tt), mod(yy + xx)]
  return { x: mod(e * f), y: mod(g * h), t: mod(e * h), z: mod(f * g) }
}
const times = (point: Point, factor: bigint): Point => {
  if (factor === 0n) return neutralPoint
  const half = times(add(point, point), factor / 2n)
  return factor % 2n ? add(half, point) : half
}
const equal = (a: Point, b: Point) => mod(a.x * b.z - b.x * a.z) === 0n && mod(a.y * b.z - b.y * a.z) === 0n
/** Accepts any encoding, which a strict verifier must not. */
const pointOf = (bytes: Uint8Array): Point => {
  const value = big(bytes)
  const y = mod(value & (2n ** 255n - 1n))
  const xx = over(y * y - 1n, d * y * y + 1n)
  const root = power(xx, (p + 3n) / 8n)
  const x = mod(root * root) === xx ? root : mod(root * power(2n, (p - 1n) / 4n))
  return affine(x % 2n === value >> 255n ? x : mod(-x), y)
}
const base = pointOf(little(over(4n, 5n)))
/** The equation alone, without any of the checks that make it safe. */
const lenient = (key: Uint8Array, text: Uint8Array, signature: Uint8Array): boolean => {
  const hash = createHash('sha512').update(signature.subarray(0, 32)).update(key).update(text).digest()
  const left = times(base, big(signature.subarray(32)))
  const right = add(pointOf(signature.subarray(0, 32)), times(pointOf(key), big(hash) % (8n * order)))
  return equal(left, right)
}
const verdicts = (key: Uint8Array, signature: Uint8Array) => ({
  lenient: lenient(key, message, signature),
  strict: verifySignature(importKey(key), message, signature),
})

test('points of small order are rejected, each in both signs', () => {
  const eighth = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n
  for (const y of [0n, 1n, p - 1n, eighth, p - eighth]) {
    assert.ok(equal(times(pointOf(little(y)), 8n), neutralPoint))
    assert.equal(isUsableKey(little(y)), false)
    assert.equal(isUsableKey(little(y + 2n ** 255n)), false)
  }
})

test('a second encoding of a point is rejected', () => {
  for (let excess = 0n; excess < 19n; excess++) assert.equal(isUsableKey(little(p + excess)), false)
  assert.equal(isUsableKey(little(2n ** 255n - 1n)), false)
  assert.equal(isUsableKey(raw), true)
})

test('a key of small order, under which any text has a valid signature, is rejected with its signature', () => {
  const neutral = little(1n)
  const forged = Buffer.concat([raw, little(scalar() % order)])
  assert.deepEqual(verdicts(neutral, forged), { lenient: true, strict: false })
  assert.equal(isUsableKey(neutral), false)
})

test('S is rejected from the order of the group upwards', () => {
  const good = sign(null, message, secret)
  assert.deepEqual(verdicts(raw, good), { lenient: true, strict: true })
  for (const more of [order, 2n * order, 7n * order]) {
    const twin = Buffer.concat([good.subarray(0, 32), little(big(good.subarray(32)) + more)])
    assert.deepEqual(verdicts(raw, twin), { lenient: true, strict: false })
  }
})

test('an R of small order is rejected in every encoding', () => {
  for (const spelling of [1n, p + 1n, 1n + 2n ** 255n, p + 1n + 2n ** 255n])
    assert.deepEqual(verdicts(raw, signedWithNoNonce(little(spelling))), { lenient: true, strict: false })
})

test('base64 is accepted in its three alphabets and in no other', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const standard = Buffer.from(bytes).toString('base64')
      const padded = standard.replaceAll('+', '-').replaceAll('/', '_')
      for (const text of [standard, padded, padded.replace('=', '')])
        assert.deepEqual(decodeBase64(text, 32)?.toString(), Buffer.from(bytes).toString())
      for (const text of [
        ` ${standard}`,
        `${standard}=`,
        `${standard}\n`,
        standard.slice(1),
        standard.slice(0, 42),
      ])
        assert.equal(decodeBase64(text, 32), undefined)
    }),
  )
})

test('base64 whose unused bits are set is rejected', () => {
  const text = Buffer.alloc(32).toString('base64')
  const twin = `${text.slice(0, 42)}B=`
  assert.deepEqual(Buffer.from(twin, 'base64'), Buffer.alloc(32))
  assert.equal(decodeBase64(twin, 32), undefined)
  const mixed = `-/${Buffer.alloc(31, 1).toString('base64').slice(2)}`
  assert.equal(decodeBase64(mixed, 32), undefined)
})

test('every generated key is usable', () => {
  for (let turn = 0; turn < 50; turn++) {
    const { publicKey } = generateKeyPairSync('ed25519')
    assert.equal(isUsableKey(publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)), true)
  }
})
