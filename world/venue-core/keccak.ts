/** Keccak-256 on 32-bit halves. The common package needs 50 us a block, more than the recovery of the signer. */
const rounds = 24
const rateBytes = 136

const roundConstants = (): Int32Array => {
  const out = new Int32Array(rounds * 2)
  let register = 1
  for (let round = 0; round < rounds; round += 1) {
    for (let bit = 0; bit < 7; bit += 1) {
      if (register & 1) {
        const place = (1 << bit) - 1
        if (place < 32) out[round * 2] = (out[round * 2] as number) ^ (1 << place)
        else out[round * 2 + 1] = (out[round * 2 + 1] as number) ^ (1 << (place - 32))
      }
      register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1
    }
  }
  return out
}

/** Target position and rotation of each 64-bit word (rho and pi together). */
const walk = (): { to: Uint8Array; by: Uint8Array } => {
  const to = new Uint8Array(24)
  const by = new Uint8Array(24)
  let x = 1
  let y = 0
  for (let step = 0; step < 24; step += 1) {
    const nextY = (2 * x + 3 * y) % 5
    x = y
    y = nextY
    to[step] = x + 5 * y
    by[step] = (((step + 1) * (step + 2)) / 2) % 64
  }
  return { to, by }
}

const constants = roundConstants()
const { to, by } = walk()
const lanes = new Int32Array(50)
const parity = new Int32Array(10)

const theta = (s: Int32Array): void => {
  for (let x = 0; x < 10; x += 1)
    parity[x] =
      (s[x] as number) ^
      (s[x + 10] as number) ^
      (s[x + 20] as number) ^
      (s[x + 30] as number) ^
      (s[x + 40] as number)
  for (let x = 0; x < 10; x += 2) {
    const left = (x + 8) % 10
    const right = (x + 2) % 10
    const low = parity[right] as number
    const high = parity[right + 1] as number
    const mixLow = (parity[left] as number) ^ ((low << 1) | (high >>> 31))
    const mixHigh = (parity[left + 1] as number) ^ ((high << 1) | (low >>> 31))
    for (let y = x; y < 50; y += 10) {
      s[y] = (s[y] as number) ^ mixLow
      s[y + 1] = (s[y + 1] as number) ^ mixHigh
    }
  }
}

const rhoPi = (s: Int32Array): void => {
  let low = s[2] as number
  let high = s[3] as number
  for (let step = 0; step < 24; step += 1) {
    const at = (to[step] as number) * 2
    let turn = by[step] as number
    if (turn >= 32) {
      const swap = low
      low = high
      high = swap
      turn -= 32
    }
    const savedLow = s[at] as number
    const savedHigh = s[at + 1] as number
    s[at] = turn === 0 ? low : (low << turn) | (high >>> (32 - turn))
    s[at + 1] = turn === 0 ? high : (high << turn) | (low >>> (32 - turn))
    low = savedLow
    high = savedHigh
  }
}

const chi = (s: Int32Array): void => {
  for (let y = 0; y < 50; y += 10) {
    for (let half = 0; half < 2; half += 1) {
      const a = s[y + half] as number
      const b = s[y + 2 + half] as number
      const c = s[y + 4 + half] as number
      const d = s[y + 6 + half] as number
      const e = s[y + 8 + half] as number
      s[y + half] = a ^ (~b & c)
      s[y + 2 + half] = b ^ (~c & d)
      s[y + 4 + half] = c ^ (~d & e)
      s[y + 6 + half] = d ^ (~e & a)
      s[y + 8 + half] = e ^ (~a & b)
    }
  }
}

const permute = (s: Int32Array): void => {
  for (let round = 0; round < rounds; round += 1) {
    theta(s)
    rhoPi(s)
    chi(s)
    s[0] = (s[0] as number) ^ (constants[round * 2] as number)
    s[1] = (s[1] as number) ^ (constants[round * 2 + 1] as number)
  }
}

export const keccak256 = (data: Uint8Array): Uint8Array => {
  lanes.fill(0)
  const blocks = Math.floor(data.length / rateBytes) + 1
  const padded = new Uint8Array(blocks * rateBytes)
  padded.set(data)
  padded[data.length] = 1
  padded[padded.length - 1] = (padded[padded.length - 1] as number) | 0x80
  const words = new Int32Array(padded.buffer)
  for (let block = 0; block < blocks; block += 1) {
    const from = (block * rateBytes) / 4
    for (let i = 0; i < rateBytes / 4; i += 1) lanes[i] = (lanes[i] as number) ^ (words[from + i] as number)
    permute(lanes)
  }
  return new Uint8Array(lanes.buffer.slice(0, 32))
}
