import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { Fault } from '#kernel/fault.ts'

/** scrypt with 32 MiB per run, so few runs at once. */
const cost = { N: 32_768, r: 8, p: 3 }
const maxmem = 64 * 1024 * 1024
const saltBytes = 16
const hashBytes = 32
const runsMax = 2
const waitingMax = 50

let running = 0
const waiting: (() => void)[] = []

async function derive(password: string, salt: Uint8Array, { N, r, p }: typeof cost): Promise<Buffer> {
  if (running >= runsMax) {
    if (waiting.length >= waitingMax)
      throw new Fault('overloaded', 'Too many sign-ins at once; try again in a moment', {
        extras: { retry_after: 2 },
      })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running += 1
  try {
    return await new Promise((resolve, reject) =>
      scrypt(password.normalize('NFKC'), salt, hashBytes, { N, r, p, maxmem }, (error, key) =>
        error ? reject(error) : resolve(key),
      ),
    )
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
}

const form = /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([\w-]{22})\$([\w-]{43})$/

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  const hash = await derive(password, salt, cost)
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), hash.toString('base64url')].join('$')
}

const noSalt = Buffer.alloc(saltBytes)

/** An unknown person costs the same time as a wrong password. */
export async function isPassword(password: string, stored: string | undefined): Promise<boolean> {
  const [, N, r, p, salt, hash] = form.exec(stored ?? '') ?? []
  if (salt === undefined || hash === undefined) {
    await derive(password, noSalt, cost)
    return false
  }
  const parameters = { N: Number(N), r: Number(r), p: Number(p) }
  const derived = await derive(password, Buffer.from(salt, 'base64url'), parameters)
  return timingSafeEqual(derived, Buffer.from(hash, 'base64url'))
}
