// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

struct Call {
    address to;
    uint256 value;
    bytes data;
}

struct BatchedCall {
    Call[] calls;
    bool revertOnFailure;
}

struct SignedBatchedCall {
    BatchedCall batchedCall;
    uint256 nonce;
    bytes32 keyHash;
    address executor;
    uint256 deadline;
}

/// The code of a delegated account (EIP-7702) in a local world. It implements the part of Calibur's interface that
/// a gateway needs: batches signed by the account's own key (key hash zero), sent by any account or by one executor.
/// Written from the published interface and EIP-712 types; without other keys, hooks and ERC-4337.
contract Executor is IERC1271, ERC721Holder, ERC1155Holder {
    bytes32 private constant DOMAIN_TYPE = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)"
    );
    bytes32 private constant CALL_TYPE = keccak256("Call(address to,uint256 value,bytes data)");
    bytes32 private constant BATCH_TYPE = keccak256(
        "BatchedCall(Call[] calls,bool revertOnFailure)Call(address to,uint256 value,bytes data)"
    );
    bytes32 private constant SIGNED_BATCH_TYPE = keccak256(
        "SignedBatchedCall(BatchedCall batchedCall,uint256 nonce,bytes32 keyHash,address executor,uint256 deadline)"
        "BatchedCall(Call[] calls,bool revertOnFailure)Call(address to,uint256 value,bytes data)"
    );

    /// The domain's salt is the implementation, not the account. The code is placed at its address without its
    /// constructor, so the address is an argument.
    address private immutable IMPLEMENTATION;

    /// Away from the account's first slots, which another delegate may have used.
    /// @custom:storage-location erc7201:portico.world.executor
    struct Sequences {
        mapping(uint256 key => uint256 next) next;
    }

    // keccak256(abi.encode(uint256(keccak256("portico.world.executor")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant SEQUENCES = 0x181215882e5458daf0c9dc0c22872c8d4cdc737cca0dc4a221ffc501827f1800;

    error Unauthorized();
    error SignatureExpired();
    error InvalidNonce();
    error InvalidSignature();
    error KeyDoesNotExist();
    error ExcessiveInvalidation();
    error CallFailed(bytes reason);

    event NonceSequenceNumberUpdated(uint256 key, uint256 seq);

    constructor(address implementation) {
        IMPLEMENTATION = implementation;
    }

    receive() external payable {}

    fallback() external payable {}

    function execute(SignedBatchedCall calldata signed, bytes calldata wrappedSignature) external payable {
        require(signed.executor == address(0) || signed.executor == msg.sender, Unauthorized());
        require(signed.deadline == 0 || block.timestamp <= signed.deadline, SignatureExpired());
        require(signed.keyHash == bytes32(0), KeyDoesNotExist());
        _useNonce(signed.nonce);
        (bytes memory signature,) = abi.decode(wrappedSignature, (bytes, bytes));
        require(_isOwn(hashTypedData(_hash(signed)), signature), InvalidSignature());
        _run(signed.batchedCall);
    }

    function execute(BatchedCall calldata batch) external payable {
        require(msg.sender == address(this), Unauthorized());
        _run(batch);
    }

    function invalidateNonce(uint256 newNonce) external {
        require(msg.sender == address(this), Unauthorized());
        uint256 key = newNonce >> 64;
        uint256 target = uint64(newNonce);
        uint256 current = _sequences().next[key];
        require(target > current, InvalidNonce());
        require(target - current <= type(uint16).max, ExcessiveInvalidation());
        _sequences().next[key] = target;
        emit NonceSequenceNumberUpdated(key, target);
    }

    function getSeq(uint256 key) external view returns (uint256) {
        return _sequences().next[uint192(key)];
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        return _isOwn(digest, signature) ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function eip712Domain()
        external
        view
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        return (hex"1f", "Calibur", "1.0.0", block.chainid, address(this), _salt(), new uint256[](0));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPE, keccak256("Calibur"), keccak256("1.0.0"), block.chainid, address(this), _salt()
            )
        );
    }

    function hashTypedData(bytes32 structHash) public view returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(domainSeparator(), structHash);
    }

    function _salt() private view returns (bytes32) {
        return bytes32(uint256(uint160(IMPLEMENTATION)));
    }

    function _isOwn(bytes32 digest, bytes memory signature) private view returns (bool) {
        (address signer, ECDSA.RecoverError problem,) = ECDSA.tryRecover(digest, signature);
        return problem == ECDSA.RecoverError.NoError && signer == address(this);
    }

    /// The upper 192 bits are the nonce key, the lower 64 must be its next sequence number.
    function _useNonce(uint256 nonce) private {
        uint256 key = nonce >> 64;
        uint256 expected = _sequences().next[key]++;
        require(expected == uint64(nonce), InvalidNonce());
        emit NonceSequenceNumberUpdated(key, expected);
    }

    function _run(BatchedCall calldata batch) private {
        for (uint256 i = 0; i < batch.calls.length; i++) {
            Call calldata one = batch.calls[i];
            address to = one.to == address(0) ? address(this) : one.to;
            (bool ok, bytes memory output) = to.call{value: one.value}(one.data);
            if (!ok && batch.revertOnFailure) revert CallFailed(output);
        }
    }

    function _hash(SignedBatchedCall calldata signed) private pure returns (bytes32) {
        Call[] calldata calls = signed.batchedCall.calls;
        bytes32[] memory hashes = new bytes32[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            hashes[i] = keccak256(abi.encode(CALL_TYPE, calls[i].to, calls[i].value, keccak256(calls[i].data)));
        }
        bytes32 callsHash = keccak256(abi.encodePacked(hashes));
        bytes32 batchHash = keccak256(abi.encode(BATCH_TYPE, callsHash, signed.batchedCall.revertOnFailure));
        return keccak256(
            abi.encode(
                SIGNED_BATCH_TYPE, batchHash, signed.nonce, signed.keyHash, signed.executor, signed.deadline
            )
        );
    }

    function _sequences() private pure returns (Sequences storage sequences) {
        bytes32 slot = SEQUENCES;
        assembly ("memory-safe") {
            sequences.slot := slot
        }
    }
}
