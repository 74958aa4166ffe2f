// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {ERC7739Utils} from "@openzeppelin/contracts/utils/cryptography/draft-ERC7739Utils.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// The code of every deposit wallet. Its owner is an argument behind the code of its proxy, so there is nothing to
/// initialise. Anyone may send a batch that the owner has signed.
contract DepositWallet is IERC1271, ERC721Holder, ERC1155Holder {
    using MessageHashUtils for bytes32;

    struct Call {
        address target;
        uint256 value;
        bytes data;
    }

    struct Batch {
        address wallet;
        uint256 nonce;
        uint256 deadline;
        Call[] calls;
    }

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant CALL_TYPE = keccak256("Call(address target,uint256 value,bytes data)");
    bytes32 private constant BATCH_TYPE = keccak256(
        "Batch(address wallet,uint256 nonce,uint256 deadline,Call[] calls)"
        "Call(address target,uint256 value,bytes data)"
    );
    /// Asks whether a wallet reads nested signatures, and the answer that it does.
    bytes32 private constant DETECTION = 0x7739773977397739773977397739773977397739773977397739773977397739;
    bytes4 private constant DETECTED = 0x77390001;

    uint256 public nonce;

    error WrongWallet(address wallet);
    error WrongNonce(uint256 given, uint256 expected);
    error DeadlineExpired(uint256 deadline);
    error InvalidSignature();
    error CallFailed(uint256 index, bytes reason);

    event BatchExecuted(uint256 indexed nonce, uint256 calls);

    receive() external payable {}

    function execute(Batch calldata batch, bytes calldata signature) external {
        require(batch.wallet == address(this), WrongWallet(batch.wallet));
        require(batch.nonce == nonce, WrongNonce(batch.nonce, nonce));
        require(block.timestamp <= batch.deadline, DeadlineExpired(batch.deadline));
        require(_isSigned(hashBatch(batch), signature), InvalidSignature());
        nonce++;
        for (uint256 i = 0; i < batch.calls.length; i++) {
            Call calldata one = batch.calls[i];
            (bool ok, bytes memory reason) = one.target.call{value: one.value}(one.data);
            require(ok, CallFailed(i, reason));
        }
        emit BatchExecuted(batch.nonce, batch.calls.length);
    }

    /// What the owner signs names this wallet (ERC-7739): a signature for one wallet of an owner is none for another.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (hash == DETECTION && signature.length == 0) return DETECTED;
        bool isValid = _isNestedTypedData(hash, signature) || _isNestedMessage(hash, signature);
        return isValid ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function owner() public view returns (address) {
        bytes memory code = address(this).code;
        bytes32 last;
        assembly ("memory-safe") {
            last := mload(add(code, mload(code)))
        }
        return address(uint160(uint256(last)));
    }

    function hashBatch(Batch calldata batch) public view returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](batch.calls.length);
        for (uint256 i = 0; i < batch.calls.length; i++) {
            Call calldata one = batch.calls[i];
            hashes[i] = keccak256(abi.encode(CALL_TYPE, one.target, one.value, keccak256(one.data)));
        }
        bytes32 calls = keccak256(abi.encodePacked(hashes));
        return domainSeparator().toTypedDataHash(
            keccak256(abi.encode(BATCH_TYPE, batch.wallet, batch.nonce, batch.deadline, calls))
        );
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPE, keccak256("DepositWallet"), keccak256("1"), block.chainid, address(this)
            )
        );
    }

    function eip712Domain()
        external
        view
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        return (hex"0f", "DepositWallet", "1", block.chainid, address(this), bytes32(0), new uint256[](0));
    }

    function _isNestedTypedData(bytes32 hash, bytes calldata wrapped) private view returns (bool) {
        (bytes calldata signature, bytes32 domain, bytes32 contents, string calldata description) =
            ERC7739Utils.decodeTypedDataSig(wrapped);
        if (hash != domain.toTypedDataHash(contents)) return false;
        bytes memory own = abi.encode(
            keccak256("DepositWallet"), keccak256("1"), block.chainid, address(this), bytes32(0)
        );
        bytes32 nested = ERC7739Utils.typedDataSignStructHash(description, contents, own);
        return nested != bytes32(0) && _isSigned(domain.toTypedDataHash(nested), signature);
    }

    function _isNestedMessage(bytes32 hash, bytes calldata signature) private view returns (bool) {
        return _isSigned(
            domainSeparator().toTypedDataHash(ERC7739Utils.personalSignStructHash(hash)), signature
        );
    }

    function _isSigned(bytes32 digest, bytes calldata signature) private view returns (bool) {
        (address signer, ECDSA.RecoverError problem,) = ECDSA.tryRecoverCalldata(digest, signature);
        return problem == ECDSA.RecoverError.NoError && signer == owner();
    }
}
