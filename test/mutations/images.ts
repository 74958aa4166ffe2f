import { mutationsOf } from './mutation.ts'

const journeys = ['test/images/images.test.ts']
const charges = ['test/images/charges.test.ts']
const keys = ['test/images/backend-keys.test.ts']
const files = ['test/images/files.test.ts']
const service = ['test/upstreams/images.test.ts']

/** What a call for images costs, whose key it has, and where images come from and go to. */
export const imageMutations = [
  ...mutationsOf('src/features/image/image.ts', charges, [
    [
      'moves: postDraw(await ledger.drawn(db, id), creditsPerCall),',
      '',
      'images are free: the credit goes back with the end',
    ],
    ['retry: { attemptsMax: 1, firstMs: 0, maxMs: 0 },', '', 'a lost reply is paid to the service again'],
  ]),
  ...mutationsOf('src/features/image/image.ts', journeys, [
    ['if (owner !== userId)', 'if (owner === undefined)', 'one key makes images for two users'],
    [
      'seed: input.seed ?? Buffer.from(random.bytes(4)).readUInt32BE(),',
      'seed: Buffer.from(random.bytes(4)).readUInt32BE(),',
      'the seed of the caller is ignored',
    ],
  ]),
  ...mutationsOf('src/features/image/image.ts', keys, [
    ['backend.accountId ?? input.user', 'input.user', 'the user who is named pays instead of the account'],
    ['if (payer.suspended_at)', 'if (!payer)', 'a suspended user goes on paying'],
  ]),
  ...mutationsOf(
    'src/features/image/sizes.ts',
    ['src/features/image/sizes.test.ts'],
    [
      [
        'const [, height, width] =',
        'const [, width, height] =',
        'a custom size is turned: the interface has the height first',
      ],
      [
        'return fits(size.width) && fits(size.height) ? size : undefined',
        'return size',
        'a size has no bounds',
      ],
    ],
  ),
  ...mutationsOf('src/features/image/backend-authentication.ts', keys, [
    [
      'if (!row || !isRight || isOver)',
      'if (!row || isOver)',
      'the id of a key is enough, without its secret',
    ],
    ['if (!row || !isRight || isOver)', 'if (!row || !isRight)', 'a revoked key goes on'],
  ]),
  ...mutationsOf('src/admin/backend-keys.ts', keys, [
    [
      'const end = later(now, hours * hourMs)',
      'const end = later(now, hourMs)',
      'a former key ends too late',
    ],
  ]),
  ...mutationsOf('src/engines/files/files.ts', files, [
    ['seconds * 1_000 > clock.now().getTime() &&', '', 'an address opens a file for ever'],
    ['(await keys.verify(signedText(address), address.sig))', 'true', 'no address needs a signature'],
    ["[digest, file, exp].join('\\n')", "[digest, file].join('\\n')", 'the end of an address can be moved'],
  ]),
  ...mutationsOf('src/engines/files/retention.ts', files, [
    [
      'and not exists (select from file f where f.sha256 = k.sha256)',
      'and exists (select 1)',
      'content of files that are kept is deleted',
    ],
  ]),
  ...mutationsOf('src/upstreams/images/images.ts', service, [
    [
      "if (!(error instanceof Fault) || error.code !== 'unavailable') throw error",
      '',
      'a request that may have arrived is sent and paid again',
    ],
    ['if (size > bytesMax)', 'if (size > bytesMax * 100)', 'an image has no bound'],
    [
      'if (reply.status !== 200) throw cannotBeRead(`answers ${reply.status}`)',
      '',
      'a page of an error is an image',
    ],
  ]),
  ...mutationsOf('src/upstreams/images/wire.ts', service, [
    ['if (urls.length !== count)', 'if (urls.length === 0)', 'fewer images than asked for are paid'],
  ]),
  ...mutationsOf(
    'src/upstreams/images/image-header.ts',
    ['src/upstreams/images/image-header.test.ts'],
    [['marker !== 0xc4 && ', '', 'a table of a JPEG is read as its size']],
  ),
]
