import { dayMs } from '#durable/upkeep/retention.ts'
import { createFiles } from '#engines/files/files.ts'
import { fileDeletions } from '#engines/files/retention.ts'
import type { Credits } from '#features/credits/credits.ts'
import { authenticateBackend } from '#features/image/backend-authentication.ts'
import { createImage, imageBytesMax } from '#features/image/image.ts'
import { imageDeletions } from '#features/image/retention.ts'
import { createImageService } from '#upstreams/images/images.ts'
import type { Parts } from './section-parts.ts'

type ImageParts = Pick<Parts, 'core' | 'urls' | 'net' | 'custody' | 'imageFiles'> & { credits: Credits }

/** Opens the files of users, the keys of backends and, where a service makes them, images. */
export function openImages({ core, urls, net, custody, credits, imageFiles }: ImageParts) {
  const { config, db, clock, random, baseUrl, taskEngine } = core
  const { keyEncryptionKeys } = custody
  const files = createFiles({ db, keyEncryptionKeys, clock, random, baseUrl })
  const operations = urls.images
    ? createImage({
        db,
        ledger: taskEngine.ledger,
        credits,
        files,
        images: createImageService({
          url: urls.images,
          app: config.IMAGES_APP,
          key: config.IMAGES_KEY,
          net,
          fetchPublic: imageFiles.fetch,
          imageBytesMax,
        }),
        clock,
        random,
      })
    : []
  return {
    files,
    authenticateBackend: authenticateBackend({ db, clock }),
    operations,
    deletions: [
      ...fileDeletions(config.FILE_RETENTION_DAYS * dayMs),
      ...imageDeletions(config.REPLY_RETENTION_DAYS * dayMs),
    ],
  }
}
