import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readImageHeader } from './image-header.ts'

const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(33)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  bytes.write('IHDR', 12, 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}
/** Segments of metadata, a table whose marker is in the range of frames, then a frame of this kind. */
const jpeg = (width: number, height: number, frame = 0xc0): Buffer => {
  const size = Buffer.from([8, height >> 8, height & 255, width >> 8, width & 255, 3, 0, 0, 0, 0])
  return Buffer.concat([
    Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0xff, 0xc0, 0xff, 0xff, 0xc4, 0, 5, 1, 2, 3]),
    Buffer.from([0xff, frame, 0, 17]),
    size,
  ])
}

test('the size is that of the header, whatever the kind of frame', () => {
  assert.deepEqual(readImageHeader(png(1_024, 576)), { contentType: 'image/png', width: 1_024, height: 576 })
  for (const frame of [0xc0, 0xc1, 0xc2, 0xcf])
    assert.deepEqual(readImageHeader(jpeg(640, 480, frame)), {
      contentType: 'image/jpeg',
      width: 640,
      height: 480,
    })
})

test('what is no image of these kinds, or has no size, is none', () => {
  assert.equal(readImageHeader(png(0, 5)), undefined)
  assert.equal(readImageHeader(jpeg(5, 0)), undefined)
  assert.equal(readImageHeader(png(5, 5).subarray(0, 30)), undefined)
  assert.equal(readImageHeader(Buffer.from('<svg width="1" height="1"/>')), undefined)
  assert.equal(readImageHeader(Buffer.from('GIF89a')), undefined)
  // The picture begins before a size.
  assert.equal(
    readImageHeader(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xda, 0, 2]), jpeg(5, 5)])),
    undefined,
  )
})

test('no bytes make it throw or run on', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isJpeg) => {
      readImageHeader(isJpeg ? Buffer.concat([Buffer.from([0xff, 0xd8]), bytes]) : bytes)
    }),
  )
})
