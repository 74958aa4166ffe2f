import { group, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable } from '#kernel/contract/wire-types.ts'
import { customPattern, sideMax, sideMin, sizeNames } from './sizes.ts'

const safeInteger = Number.MAX_SAFE_INTEGER

export const ImageRequest = T.Object(
  {
    user: T.String({ format: 'uuid', description: 'Id of the user who asks for the image' }),
    query: T.String({ minLength: 1, maxLength: 4_000, description: 'What the image shows' }),
    image_size: T.Optional(
      T.Unsafe<string | null>({
        anyOf: [
          { type: 'string', enum: sizeNames },
          {
            type: 'string',
            pattern: customPattern,
            maxLength: 9,
            description: `<height>x<width>, the height first; each side from ${sideMin} to ${sideMax} pixels`,
          },
          { type: 'null' },
        ],
        default: 'square_hd',
        description: 'A named size, or <height>x<width> with the height first; null is the default',
      }),
    ),
    num_images: T.Optional(
      T.Integer({ minimum: 1, maximum: 4, default: 1, description: 'Images of one call, for one credit' }),
    ),
    num_inference_steps: T.Optional(
      T.Integer({ minimum: 1, maximum: 50, default: 4, description: 'Steps of inference' }),
    ),
    seed: T.Optional(
      Nullable(
        T.Integer({
          minimum: 0,
          maximum: safeInteger,
          description: 'The same seed and query give the same images; left out or null: a random one',
        }),
      ),
    ),
  },
  {
    $id: 'ImageRequest',
    examples: [{ user: '01976d2e-5f5a-7c3b-9d2f-3a6b1c4d5e6f', query: 'a rocket over the sea at night' }],
  },
)

const ImageResponse = T.Object(
  {
    images: T.Array(
      T.Object(
        {
          url: T.String({ format: 'uri', description: 'Signed address of the file, for 15 minutes' }),
          width: T.Integer({ description: 'Width of the file in pixels' }),
          height: T.Integer({ description: 'Height of the file in pixels' }),
          content_type: T.String({ description: 'image/png or image/jpeg' }),
        },
        { $id: 'Image' },
      ),
      { description: 'One for each image that was asked for' },
    ),
    timings: T.Object(
      { inference: T.Number({ description: 'Seconds that the images took' }) },
      { description: 'How long the service worked' },
    ),
    seed: T.Integer({ description: 'The seed of the images, also where none was sent' }),
    has_nsfw_concepts: T.Array(T.Boolean(), { description: 'For each image, whether it was flagged' }),
    prompt: T.String({ description: 'The query' }),
    credits_available: T.Integer({ description: 'Credits that the payer can still spend' }),
  },
  { $id: 'ImageResponse' },
)

/** The wait is longer than the images may take, and shorter than the 90 s that any request may wait. */
export const waitSeconds = 85

export const contract = group('image', 'Images of a description, for servers with a key of their own.', {
  create: task('POST /chat/image/', {
    summary: 'Images of a description, for one credit',
    description:
      'Use it from a server with a key in X-BACKEND-KEY. The call waits for the images. One credit of the user, or of the account of the server, is held first and taken only with a 200. Send an `Idempotency-Key`: a repeat returns the same images and costs nothing. Next: fetch each `url` within 15 minutes; `credits_available` shows the user what is left.',
    access: 'backend',
    rate: 'image',
    body: ImageRequest,
    waitSeconds,
    isAnswered: true,
    priority: 3,
    output: ImageResponse,
    faults: [
      'insufficient_credits',
      'suspended',
      'not_found',
      'conflict',
      'upstream_rejected',
      'upstream_timeout',
    ],
  }),
})
