import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkCodeHash, newLinkCode, readLinkCode } from './link-code.ts'

const randomOf = (byte: number) => ({ bytes: (count: number) => new Uint8Array(count).fill(byte) })

test('a code has twelve digits in three groups, and is read as it was made', () => {
  for (let byte = 0; byte < 256; byte++) {
    const code = newLinkCode(randomOf(byte))
    assert.match(code, /^([0-9A-HJKMNP-TV-Z]{4}-){2}[0-9A-HJKMNP-TV-Z]{4}$/)
    assert.equal(readLinkCode(code), code)
  }
})

test('a person may type small letters, no dashes, and digits that look alike', () => {
  assert.equal(readLinkCode(' 0a1b-2c3d-4e5f '), '0A1B-2C3D-4E5F')
  assert.equal(readLinkCode('OalB2C3D4E5F'), '0A1B-2C3D-4E5F')
})

test('any other text is no code', () => {
  for (const text of ['', '0A1B-2C3D-4E5', '0A1B-2C3D-4E5F6', 'UUUU-UUUU-UUUU', '0A1B-2C3D-4E5é'])
    assert.equal(readLinkCode(text), undefined, text)
})

test('codes that differ have hashes that differ', () => {
  assert.notDeepEqual(linkCodeHash('0A1B-2C3D-4E5F'), linkCodeHash('0A1B-2C3D-4E5G'))
})
